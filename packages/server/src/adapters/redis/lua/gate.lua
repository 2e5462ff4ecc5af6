-- KEYS: session. What comes first, then what was held back at the gate. 6 id, 7 call, 8 … source, n, text of each
local h = load(ARGV[6])
if h == nil or not h['G' .. ARGV[7]] then return out end
local name = ARGV[7]
local key = base .. 'g:' .. h.sid .. ':' .. name
local held = call('LRANGE', key, 0, -1)
local known = h['N' .. name]
drop(h, 'G' .. name)
-- What waits at the gate was counted when it came; what comes first is older.
if #held > 0 then drop(h, 'N' .. name) end
for i = 8, #ARGV, 3 do deliver(h, 'relay', name, '', ARGV[i + 2], ARGV[3], ARGV[i], ARGV[i + 1]) end
for _, text in ipairs(held) do deliver(h, 'relay', name, '', text, ARGV[3]) end
if #held > 0 and known then put(h, 'N' .. name, known) end
call('DEL', key)
return out
