-- KEYS: session. What comes first, then what was held back at the gate. 6 id, 7 call, 8 … source, n, text of each
local h = load(ARGV[6])
if h == nil or h['G' .. ARGV[7]] ~= '1' then return out end
local name = ARGV[7]
local key = base .. 'g:' .. h.sid .. ':' .. name
local held = call('LRANGE', key, 0, -1)
-- Who tells of the same answer late must not close it again.
put(h, 'G' .. name, '0')
call('DEL', key)
local isKnown = {}
for i = 8, #ARGV, 3 do
  local source, n = ARGV[i], ARGV[i + 1]
  if isKnown[source] == nil then isKnown[source] = knowsUntaken(h, name, source) end
  -- Another node may have handed it over before it died, or at the same time.
  if isKnown[source] then deliver(h, kindOfKept(ARGV[i + 2]), name, '', ARGV[i + 2], ARGV[3], source, n)
  elseif not wentThrough(h, name, source, n) then deliver(h, kindOfKept(ARGV[i + 2]), name, '', ARGV[i + 2], ARGV[3]) end
end
for _, text in ipairs(held) do deliver(h, kindOfKept(text), name, '', text, ARGV[3]) end
return out
