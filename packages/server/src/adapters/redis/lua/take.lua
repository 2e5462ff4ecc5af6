-- KEYS: session. What was kept until the accept, and from now on nothing more is. 6 id, 7 call
-- What waits for the accept is no part of the log.
local h = read(ARGV[6])
if h == nil then return out end
put(h, 'K' .. ARGV[7], '-')
return { call('LRANGE', base .. 'k:' .. h.sid .. ':' .. ARGV[7], 0, -1), unpack(out) }
