-- KEYS: as in written.lua. 1 a node. Answers its word, but not one of before this server took over, or began again.
local word = redis.call('HGET', KEYS[1], ARGV[1])
if word ~= string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)') then return {} end
return { word }
