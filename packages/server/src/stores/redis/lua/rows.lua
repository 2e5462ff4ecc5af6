-- KEYS: the index of a participant. Answers the rows of its sessions: id, and what is known of it in the order of `rowFields`.
local found = {}
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local row = redis.call('HMGET', ARGV[1] .. id, 'o', 'f', 'k', 'd', 'n', 'x', 'op', 'xp', 'av', 'w', 't', 'ph', 'u', 'b', 'cn')
  if row[1] then
    found[#found + 1] = id
    for _, field in ipairs(row) do found[#found + 1] = field or '' end
  else
    redis.call('ZREM', KEYS[1], id)
  end
end
return found
