-- KEYS: rows, and of each the log after it. 1 owner, 2 … of each its fence and for how long it is remembered. Answers those that are not this owner's any more.
-- One of an earlier owner, with a lower fence, counts as missing: the later owner writes it again.
local lost = {}
for k = 1, #KEYS, 2 do
  local known = redis.call('HMGET', KEYS[k], 'f', 'o', 'k')
  if known[1] == ARGV[k + 1] and known[2] == ARGV[1] then
    redis.call('PEXPIRE', KEYS[k], ARGV[k + 2])
    redis.call('PEXPIRE', KEYS[k + 1], ARGV[k + 2])
  else
    lost[#lost + 1] = (k - 1) / 2
    local isEarlier = not known[1] or tonumber(known[1]) < tonumber(ARGV[k + 1])
    lost[#lost + 1] = isEarlier and 'missing' or known[3] == '1' and 'moved' or 'other'
  end
end
return lost
