-- KEYS: row. Answers what is known of one session, as `rows` does.
local row = redis.call('HMGET', KEYS[1], 'o', 'f', 'k', 'd', 'n', 'x', 'op', 'xp', 'av', 'w', 't', 'ph', 'u', 'b', 'cn')
if not row[1] then return {} end
for i = 1, #row do row[i] = row[i] or '' end
return row
