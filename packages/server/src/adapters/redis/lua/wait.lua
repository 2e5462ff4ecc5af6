-- KEYS: session. A relay that waits for the accept [REL2]. 6 id, 7 call, 8 text, 9 n
local h = load(ARGV[6])
if h == nil then return { 'gone', unpack(out) } end
local name, text = ARGV[7], ARGV[8]
-- It was told of the call's end: whoever asks goes by what was before.
if h['F' .. name] then return { 'closed', unpack(out) } end
local key, bytes = base .. 'k:' .. h.sid .. ':' .. name, h['K' .. name] or '0'
if bytes == '-' then return { 'closed', unpack(out) } end
-- It comes again [EXT4]: 11 may have been kept and 10 refused.
local n, highest = tonumber(ARGV[9]), lastTaken(h, 'Nk' .. name, h.sid) or 0
if n and n <= highest then
  local kept = call('LRANGE', key, 0, -1)
  for i = 1, #kept, 3 do
    if kept[i] == h.sid and kept[i + 1] == ARGV[9] then return { 'kept', unpack(out) } end
  end
end
if tonumber(bytes) + #text > 262144 or call('LLEN', key) >= 768 then return { 'full', unpack(out) } end
put(h, 'K' .. name, tostring(tonumber(bytes) + #text))
if n and n > highest then put(h, 'Nk' .. name, h.sid .. ' ' .. ARGV[9]) end
-- A base session has no numbers of its own: here it gets one, so that nothing of it is handed over twice.
call('RPUSH', key, h.sid, ARGV[9] ~= '' and ARGV[9] or call('LLEN', key) / 3 + 1, text)
call('PEXPIRE', key, liveTtl)
return { 'kept', unpack(out) }
