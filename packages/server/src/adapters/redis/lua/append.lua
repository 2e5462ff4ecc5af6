-- KEYS: session, log. 6 kind, 7 call, 8 version, 9 text, 10 id
local h = { sid = ARGV[10], key = KEYS[1], log = KEYS[2] }
local name = ARGV[7]
local f = call('HMGET', h.key, 'run', 'n', 's', 'rd', 'x', 'q', 'b', 'cl', 'oo', 'R' .. name, 'V' .. name)
if not f[1] then return { 'gone' } end
if f[1] ~= run or f[2] == '' then
  h = load(ARGV[10])
  if h == nil then return { 'gone' } end
else
  h.n, h.s, h.rd, h.x, h.q, h.b, h.cl, h.oo = f[2], f[3], f[4], f[5], f[6], f[7], f[8], f[9]
  h['R' .. name], h['V' .. name] = f[10] or nil, f[11] or nil
end
if h.n ~= me then
  local result = deliver(h, ARGV[6], name, ARGV[8], ARGV[9], ARGV[3])
  if h.n == '' and h.stopped then becameIdle(h) end
  return { result }
end
-- The asking node has the text and hands it over itself.
local result, seq = push(h, ARGV[6], name, ARGV[8], ARGV[9], ARGV[3])
return { result, seq or 0, h.s, unpack(out) }
