-- KEYS: session. 6 id, 7 socket
local h = load(ARGV[6])
if h == nil or h.s ~= ARGV[7] then return { 'gone', unpack(out) } end
if h.rd == '1' then return { 'was', unpack(out) } end
local from = tonumber(h.rf)
-- More came than the log holds before any of it could be told: nothing is, rather than a part [RES2].
if h.x == '1' and not reaches(h, from) then return { 'trimmed', unpack(out) } end
put(h, 'rd', '1')
return { 'ready', h.q, call('XRANGE', h.log, from + 1, '+'), unpack(out) }
