-- KEYS: the devices that were woken for a call. 1 'add', 'remove' or 'all', 2 how long they are remembered, 3 … devices.
-- 'add' answers those that were not there yet, 'all' every one.
local answer = {}
if ARGV[1] == 'all' then return redis.call('SMEMBERS', KEYS[1]) end
for i = 3, #ARGV do
  if ARGV[1] == 'remove' then redis.call('SREM', KEYS[1], ARGV[i])
  elseif redis.call('SADD', KEYS[1], ARGV[i]) == 1 then answer[#answer + 1] = ARGV[i] end
end
if ARGV[1] == 'add' then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return answer
