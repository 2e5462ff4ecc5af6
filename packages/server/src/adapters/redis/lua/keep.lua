-- KEYS: session, log. An append where there is no socket, or a log that was lost. 6 kind, 7 call, 8 version, 9 text, 10 id
local h = load(ARGV[10])
if h == nil then return { 'gone', unpack(out) } end
local result = deliver(h, ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[3])
if h.stopped then becameIdle(h) end
return { result, unpack(out) }
