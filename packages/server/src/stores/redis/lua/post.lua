-- KEYS: the inbox of a node. 1 frames. One that nobody reads is not kept for ever.
redis.call('XADD', KEYS[1], 'MAXLEN', '~', 50000, '*', 'b', ARGV[1])
redis.call('PEXPIRE', KEYS[1], 600000)
return {}
