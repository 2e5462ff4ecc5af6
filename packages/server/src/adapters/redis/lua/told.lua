-- KEYS: a call. Up to which version it was told; with a version, at least to that. 1 version, 2 for how long it is known,
-- 3 whether only where nothing is known
local version = tonumber(redis.call('GET', KEYS[1]) or '0')
if ARGV[1] ~= '' and tonumber(ARGV[1]) >= version and (ARGV[3] ~= '1' or version == 0) then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  version = tonumber(ARGV[1])
end
return { version }
