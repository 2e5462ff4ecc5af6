-- KEYS: session, log. An append to a session with a socket; to any other it writes nothing and says so.
-- 6 kind, 7 call, 8 version, 9 text, 10 id, 11 source, 12 n, 13 whether only who has the place gets it
local name = ARGV[7]
local f = call('HMGET', KEYS[1], 'run', 'n', 's', 'rd', 'x', 'q', 'b', 'cl', 'oo', 'R' .. name, 'V' .. name, 'P' .. name,
  'G' .. name, 'N' .. name, 'F' .. name, 'fc', 'U' .. name, 'e', 'sc', 'rf', 'W' .. name, 'Nh' .. name)
if f[1] ~= run or f[2] == '' then return { f[1] and 'keep' or 'gone' } end
local h = { sid = ARGV[10], key = KEYS[1], log = KEYS[2], n = f[2], s = f[3], rd = f[4], x = f[5], q = f[6], b = f[7] }
h.cl, h.oo, h.fc = f[8], f[9], f[16] or nil
h['R' .. name], h['V' .. name], h['P' .. name] = f[10] or nil, f[11] or nil, f[12] or nil
h['G' .. name], h['N' .. name], h['F' .. name] = f[13] or nil, f[14] or nil, f[15] or nil
h['U' .. name], h.e, h.sc, h.rf, h['W' .. name] = f[17] or nil, f[18], f[19] or nil, f[20], f[21] or nil
h['Nh' .. name] = f[22] or nil
if h.n ~= me then return { (deliver(h, ARGV[6], name, ARGV[8], ARGV[9], ARGV[3], ARGV[11], ARGV[12], ARGV[13])) } end
-- The asking node has the text and hands it over itself.
local result, seq = push(h, ARGV[6], name, ARGV[8], ARGV[9], ARGV[3], ARGV[11], ARGV[12], ARGV[13])
return { result, seq or 0, h.s, unpack(out) }
