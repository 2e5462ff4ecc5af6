-- KEYS: of one master, which nodes have written there what they own: name, and what the master was called then. 1 a node, 2
-- its word, or '' to look only, 3 '1' where it has nothing to lose, 4 '1' where it serves, so that nobody has to make up the
-- sessions there (maker.lua), 5 … nodes that are given up unless their word is the same.
-- Who was given up stays so until it has let go of everything. Answers all.
local key, node, word = KEYS[1], ARGV[1], ARGV[2]
if word ~= '' and (ARGV[3] == '1' or redis.call('HGET', key, node) ~= 'gone') then redis.call('HSET', key, node, word) end
if word ~= '' and ARGV[4] == '1' then redis.call('HDEL', key, 'maker') end
for i = 5, #ARGV do
  if redis.call('HGET', key, ARGV[i]) ~= word then redis.call('HSET', key, ARGV[i], 'gone') end
end
return redis.call('HGETALL', key)
