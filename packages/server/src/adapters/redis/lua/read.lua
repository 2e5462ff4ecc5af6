-- KEYS: session. What is in the log after a seq. 6 id, 7 socket, 8 seq
local h, seq = load(ARGV[6]), tonumber(ARGV[8])
if h == nil or h.s ~= ARGV[7] then return { 'gone', unpack(out) } end
-- What made room for more, or was lost, is told of and never passed over [RES2, RES4].
if h.x == '1' and not reaches(h, seq) then return { 'gone', unpack(out) } end
if h.x ~= '1' and seq < tonumber(h.tr or '0') then return { 'trimmed', unpack(out) } end
return { h.e, h.q, call('XRANGE', h.log, seq + 1, '+'), unpack(out) }
