-- KEYS: session. Where its log is, for the node that holds its socket; it is remembered for longer. 6 id, 7 socket,
-- 8 what was handed over, 9 of which epoch: a log of that epoch that is shorter is another one
local h = load(ARGV[6])
if h == nil then return { 'gone' } end
if h.s ~= ARGV[7] then return { 'taken' } end
if h.e == ARGV[9] and tonumber(h.q) < tonumber(ARGV[8]) then void(h) end
expire(h)
call('PEXPIRE', base .. 'a:' .. h.ph, indexTtl)
return { h.e, h.q, callsOf(h, 'PR'), unpack(out) }
