-- KEYS: row. The same of one session.
local row = redis.call('HMGET', KEYS[1], 'o', 'f', 'k', 'd', 'n', 'x', 'op', 'xp', 'av', 'w', 'ph')
if not row[1] then return {} end
for i = 1, #row do row[i] = row[i] or '' end
return row
