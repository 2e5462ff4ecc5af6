-- KEYS: a hash of the devices that were woken for a call: each with the node that wakes it, or '+' once it is settled. 1 what
-- to do, 2 this node, 3 how long the hash is remembered, in ms, and then devices. 'add' takes pairs of a device and the dead
-- node that it may be taken from, or ''; it answers '' for each device that this node has got, and else who has it. 'all'
-- answers the devices.
local key, what, node = KEYS[1], ARGV[1], ARGV[2]
if what == 'all' then return redis.call('HKEYS', key) end
local answer = {}
if what == 'add' then
  -- The ring is known even if it wakes no device.
  redis.call('HSET', key, '', '')
  for i = 4, #ARGV, 2 do
    local holder = redis.call('HGET', key, ARGV[i])
    local isFree = not holder or holder == ARGV[i + 1]
    if isFree then redis.call('HSET', key, ARGV[i], node) end
    answer[#answer + 1] = isFree and '' or holder
  end
  redis.call('PEXPIRE', key, ARGV[3])
else
  for i = 4, #ARGV do
    local holder = redis.call('HGET', key, ARGV[i])
    if what == 'settle' and holder then redis.call('HSET', key, ARGV[i], '+') end
    if what == 'remove' and holder == node then redis.call('HDEL', key, ARGV[i]) end
  end
end
return answer
