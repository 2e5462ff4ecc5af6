-- KEYS: row, log. 1 who takes the session over, 2 its fence as it was seen. Answers the new fence, its copy, whether that is
-- whole, and its log; nothing where another one was faster, and '' where there is nothing to go on with.
local known = redis.call('HMGET', KEYS[1], 'f', 'c', 'r', 'ph')
if known[1] ~= ARGV[2] then return {} end
if not known[2] or known[2] == '' then
  redis.call('DEL', KEYS[1], KEYS[2])
  -- Its owner may live, with a socket at which nothing rings any more: it finds that somebody has taken it.
  redis.call('HSET', KEYS[1], 'f', ARGV[2] + 1, 'k', '0')
  redis.call('PEXPIRE', KEYS[1], 60000)
  return { '' }
end
local fence = redis.call('HINCRBY', KEYS[1], 'f', 1)
-- The socket was its last owner's.
redis.call('HSET', KEYS[1], 'o', ARGV[1], 'k', '0', 'u', '0')
local isWhole = known[3] == string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')
return { fence, known[2], isWhole and 1 or 0, redis.call('LRANGE', KEYS[2], 0, -1) }
