-- KEYS: since. Before when everything committed was told, where it is not known how far; 1 what it is if nobody has said so.
redis.call('SET', KEYS[1], ARGV[1], 'NX')
return { tonumber(redis.call('GET', KEYS[1])) }
