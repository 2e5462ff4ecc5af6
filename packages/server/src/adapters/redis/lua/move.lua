-- KEYS: session, session. A place passes on, and what waits about the call goes along, in order [PLACE2]. 6 call, 7 from,
-- 8 to, 9 settled, 10 version
local source, target, name = load(ARGV[7]), load(ARGV[8]), ARGV[6]
if target == nil then return { 0, unpack(out) } end
if source == nil or source.ph ~= target.ph then return { 1, unpack(out) } end
-- Where it has passed on again, it is not to be taken back.
if not hold(target, name, ARGV[9], ARGV[10]) then return { 1, unpack(out) } end
if source['K' .. name] then
  put(target, 'K' .. name, source['K' .. name])
  local kept = base .. 'k:' .. source.sid .. ':' .. name
  if call('EXISTS', kept) == 1 then call('RENAME', kept, base .. 'k:' .. target.sid .. ':' .. name) end
end
for _, letter in ipairs({ 'N', 'Nk', 'Nh' }) do
  if source[letter .. name] then put(target, letter .. name, source[letter .. name]) end
end
if source['G' .. name] then
  put(target, 'G' .. name, source['G' .. name])
  local held = base .. 'g:' .. source.sid .. ':' .. name
  if call('EXISTS', held) == 1 then call('RENAME', held, base .. 'g:' .. target.sid .. ':' .. name) end
end
for _, f in ipairs(takeUnproven(source, function(_, of) return of == name end)) do
  deliver(target, f[2], f[4], f[6], f[10], f[8])
end
release(source, name)
put(source, 'Q' .. name, ARGV[10])
if source.n == '' and isForgettable(source) then forget(source) end
expire(target)
return { 1, unpack(out) }
