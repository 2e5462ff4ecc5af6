-- KEYS: session. 6 id, 7 what, 8 call or seq, 9 settled, 10 gate
local h = load(ARGV[6])
if h == nil then return { 0, unpack(out) } end
local what, name, found = ARGV[7], ARGV[8], 1
if what == 'prove' then prove(h, tonumber(name)) return { 1, unpack(out) } end
if what == 'ring' then
  if not h['R' .. name] then
    put(h, 'R' .. name, '1')
    tell(h, 'R ' .. h.sid .. ' ' .. h.s .. ' 1 ' .. name)
  end
elseif what == 'hold' then
  hold(h, name, ARGV[9])
  if ARGV[10] == '1' and not h['G' .. name] then put(h, 'G' .. name, '1') end
else
  release(h, name)
  if h.n == '' and isForgettable(h) then forget(h) return { found, unpack(out) } end
end
expire(h)
return { found, unpack(out) }
