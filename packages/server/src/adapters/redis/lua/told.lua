-- KEYS: a call. Up to which version it was told; with a version, at least to that. 1 version, 2 for how long it is known
local version = tonumber(redis.call('GET', KEYS[1]) or '0')
if ARGV[1] ~= '' and tonumber(ARGV[1]) >= version then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  version = tonumber(ARGV[1])
end
return { version }
