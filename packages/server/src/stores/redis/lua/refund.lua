-- KEYS: counter. Takes one back, where the window is not over.
if tonumber(redis.call('GET', KEYS[1]) or '0') > 0 then redis.call('DECR', KEYS[1]) end
return {}
