-- KEYS: session, session. A place passes on, and what waits about the call goes along, in order [PLACE2]. 6 call, 7 from,
-- 8 to, 9 settled, 10 version, 11 whether relays are held back from now on
local source, target, name = load(ARGV[7]), load(ARGV[8]), ARGV[6]
if target == nil then return { 0, unpack(out) } end
if source == nil or source.ph ~= target.ph then return { 1, unpack(out) } end
-- Where it has passed on again, it is not to be taken back.
if not hold(target, name, ARGV[9], ARGV[10]) then return { 1, unpack(out) } end
-- What waits at both goes on in one list, that of before in front.
local function join(letter)
  local of, to = base .. letter .. ':' .. source.sid .. ':' .. name, base .. letter .. ':' .. target.sid .. ':' .. name
  local waiting = call('LRANGE', of, 0, -1)
  for i = #waiting, 1, -1 do call('LPUSH', to, waiting[i]) end
  if #waiting > 0 then call('PEXPIRE', to, placeTtl) end
end
if source['K' .. name] then
  local kept, own = source['K' .. name], target['K' .. name] or '0'
  if kept ~= '-' then kept = own == '-' and own or tostring(tonumber(kept) + tonumber(own)) end
  put(target, 'K' .. name, kept)
  join('k')
end
-- What one of them has taken counts as taken.
if source['Nh' .. name] and not target['Nh' .. name] then put(target, 'Nh' .. name, source['Nh' .. name]) end
local sender = string.match(source['N' .. name] or '', '^(%S+) ')
if sender then
  local both = {}
  for _, a in ipairs(untaken(source, name, sender)) do
    for _, b in ipairs(untaken(target, name, sender)) do
      local from, to = math.max(a[1], b[1]), math.min(a[2], b[2])
      if from <= to then both[#both + 1] = { from, to } end
    end
  end
  setUntaken(target, name, sender, both)
end
-- Another node may have told of it before: what an extended one with a socket had stays in its log.
local isPassed = not source['P' .. name] and tonumber(source['Q' .. name] or '0') >= tonumber(ARGV[10])
for _, f in ipairs(takeUnproven(source, function(kind, of) return kind ~= 'media' and of == name and not isPassed end)) do
  deliver(target, f[2], f[4], f[6], f[10], f[8])
end
local gate, own = source['G' .. name], target['G' .. name]
if gate == '1' and own == '0' then
  -- Opened there already: nobody will open it again.
  local held = call('LRANGE', base .. 'g:' .. source.sid .. ':' .. name, 0, -1)
  for _, text in ipairs(held) do deliver(target, kindOfKept(text), name, '', text, ARGV[3]) end
elseif gate == '1' then
  put(target, 'G' .. name, '1')
  join('g')
elseif not own and (gate or ARGV[11] == '1') then put(target, 'G' .. name, gate or '1') end
-- What the peer sends, as it said last [MEDIA1].
if source['M' .. name] then deliver(target, 'media', name, '', source['M' .. name], ARGV[3]) end
release(source, name)
put(source, 'Q' .. name, ARGV[10])
notePassed(source, name)
if source.n == '' and isForgettable(source) then letGo(source) end
expire(target)
return { 1, unpack(out) }
