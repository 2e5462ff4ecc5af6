-- KEYS: a call. Up to which version it was told, and whether no node can have told more; with a version, at least to that.
-- 1 version, 2 for how long it is known, 3 whether the store lost what it knew, and a node says what it told: other nodes
-- may have told more. Such a version is written 3.0, and one that is sure 3.
local known = redis.call('GET', KEYS[1]) or '0.0'
local version, isSure = tonumber(known), not string.find(known, '.', 1, true)
if ARGV[1] ~= '' and tonumber(ARGV[1]) >= version and not (ARGV[3] == '1' and isSure) then
  version, isSure = tonumber(ARGV[1]), ARGV[3] ~= '1'
  redis.call('SET', KEYS[1], isSure and ARGV[1] or ARGV[1] .. '.0', 'PX', ARGV[2])
end
return { version, isSure and 1 or 0 }
