-- KEYS: as in written.lua. 1 a node, or '' where all sessions are there. 2 '' or a node that died. Where nobody has written
-- yet, or where still the dead one has to, the node makes up the sessions of this master. Answers who has to.
local key, node = KEYS[1], ARGV[1]
if node == '' then
  redis.call('HDEL', key, 'maker')
elseif redis.call('EXISTS', key) == 0 or (ARGV[2] ~= '' and redis.call('HGET', key, 'maker') == ARGV[2]) then
  redis.call('HSET', key, 'maker', node)
end
local maker = redis.call('HGET', key, 'maker')
if maker then return { maker } end
return {}
