-- KEYS: nodes. This node lives; answers who does. Its own time is the store's.
local t = redis.call('TIME')
local at = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', at - tonumber(ARGV[2]))
if ARGV[1] ~= '' then redis.call('ZADD', KEYS[1], at, ARGV[1]) end
return redis.call('ZRANGE', KEYS[1], 0, -1)
