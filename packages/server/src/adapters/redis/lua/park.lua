-- KEYS: session. What its client asked for on a socket on which nothing happens any more [EXT4]. 6 id, 7 socket,
-- 8 upstream, 9 dropped
local h = load(ARGV[6])
if h == nil or (h.s ~= ARGV[7] and h.ls ~= ARGV[7]) then return { 0, unpack(out) } end
call('HSET', h.key, 'up', ARGV[8], 'ud', ARGV[9], 'pk', '1')
return { 1, unpack(out) }
