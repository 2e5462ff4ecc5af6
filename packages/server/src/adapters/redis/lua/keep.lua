-- KEYS: session, log. An append where there is no socket, or a log that was lost. 6 kind, 7 call, 8 version, 9 text, 10 id,
-- 11 source, 12 n, 13 whether only who has the place gets it
local h = load(ARGV[10])
if h == nil then return { 'gone', unpack(out) } end
local result = deliver(h, ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[3], ARGV[11], ARGV[12], ARGV[13])
if h.stopped then becameIdle(h) end
if isLast(ARGV[6]) and result == 'kept' then
  -- It may have been let go: for as long as this is worth telling it stays.
  expire(h)
  passFinalOn(h, ARGV[7])
end
return { result, unpack(out) }
