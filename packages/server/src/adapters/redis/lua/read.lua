-- KEYS: session. What is in the log after a seq. 6 id, 7 socket, 8 seq
local h = load(ARGV[6])
if h == nil or h.s ~= ARGV[7] then return { 'gone', unpack(out) } end
return { h.e, h.q, call('XRANGE', h.log, tonumber(ARGV[8]) + 1, '+'), unpack(out) }
