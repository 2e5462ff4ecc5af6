-- KEYS: session. 6 id, 7 what, 8 call, seq or expiry, 9 settled, 10 gate, 11 version
local h = load(ARGV[6])
if h == nil then return { 0, unpack(out) } end
local what, name, found = ARGV[7], ARGV[8], 1
if what == 'prove' then prove(h, tonumber(name)) return { 1, unpack(out) } end
if what == 'renew' then put(h, 'xp', name) return { 1, unpack(out) } end
if what == 'ring' then
  if not h['R' .. name] then
    put(h, 'R' .. name, '1')
    tell(h, 'R ' .. h.sid .. ' ' .. h.s .. ' 1 ' .. name)
  end
elseif what == 'hold' then
  -- Who was told of what came after the answer has the answer's gate behind it.
  local isPast = tonumber(h['V' .. name] or '0') > tonumber(ARGV[11])
  if hold(h, name, ARGV[9], ARGV[11]) and ARGV[10] == '1' and not h['G' .. name] and not isPast then
    put(h, 'G' .. name, '1')
  end
else
  drop(h, 'V' .. name)
  drop(h, 'W' .. name)
  drop(h, 'Q' .. name)
  release(h, name)
  finish(h, name)
  -- Who ended it was not told of the end: its holder says so to a log that begins again.
  tell(h, 'F ' .. h.sid .. ' ' .. h.s .. ' ' .. name)
  if h.n == '' and isForgettable(h) then forget(h) return { found, unpack(out) } end
end
expire(h)
return { found, unpack(out) }
