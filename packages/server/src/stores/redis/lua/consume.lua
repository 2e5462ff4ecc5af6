-- KEYS: counter. ARGV: 1 budget, 2 window in ms. Answers 0, or how long the window still lasts, in ms.
-- The window is the key's expiry: a span that only the clock of this server measures.
local windowMs = tonumber(ARGV[2])
local count = redis.call('GET', KEYS[1])
if not count then
  redis.call('SET', KEYS[1], 1, 'PX', windowMs)
  return { 0 }
end
local left = redis.call('PTTL', KEYS[1])
-- Expiry is an instant in a replica, whose clock may be another one; and a window may have become shorter.
if left < 0 or left > windowMs then
  redis.call('PEXPIRE', KEYS[1], windowMs)
  left = windowMs
end
if tonumber(count) >= tonumber(ARGV[1]) then return { math.max(1, left) } end
redis.call('INCR', KEYS[1])
return { 0 }
