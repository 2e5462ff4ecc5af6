-- KEYS: nodes. This node lives; answers whether nobody knew it, the time, and who does live since when. Its own time is the store's.
local t = redis.call('TIME')
local at = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', at - tonumber(ARGV[2]))
local isNew = ARGV[1] ~= '' and redis.call('ZADD', KEYS[1], at, ARGV[1]) or 0
return { isNew, at, unpack(redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')) }
