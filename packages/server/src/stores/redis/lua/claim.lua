-- KEYS: row, log. 1 who takes the session over, 2 its fence as it was seen. If the owner did not give the session away: 3 the
-- replication id with which this server had what all nodes own, or '', and 4 the lowest fence that an owner may get because of a
-- row that this server has from another one, or from a file: a later owner may live. Answers the new fence, its copy, whether
-- that is whole, and its log; nothing where another one was faster, '' where there is nothing to go on with, and 'unsure' where
-- it is not known that every later owner has written such a row again.
local known = redis.call('HMGET', KEYS[1], 'f', 'c', 'r')
if known[1] ~= ARGV[2] then return {} end
local origin = string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')
local isWhole, fence = known[3] == origin, ARGV[2] + 1
if ARGV[3] and not isWhole then
  if ARGV[3] ~= origin then return { 'unsure' } end
  fence = math.max(fence, tonumber(ARGV[4]))
-- Its owner is back, and has written it again.
elseif ARGV[3] == origin then return {} end
if not known[2] or known[2] == '' then
  redis.call('DEL', KEYS[1], KEYS[2])
  -- Its owner may live, with a socket at which nothing rings any more: it finds that somebody has taken it.
  redis.call('HSET', KEYS[1], 'f', fence, 'k', '0')
  redis.call('PEXPIRE', KEYS[1], 60000)
  return { '' }
end
-- The socket was its last owner's.
redis.call('HSET', KEYS[1], 'f', fence, 'o', ARGV[1], 'k', '0', 'u', '0')
return { fence, known[2], isWhole and 1 or 0, redis.call('LRANGE', KEYS[2], 0, -1) }
