-- KEYS: session. 6 id: the socket, the last one, who it is, whether it is extended, whether it has a place, whether it rings
local h = load(ARGV[6])
if h == nil then h = read(ARGV[6]) end
if h == nil then return {} end
return { h.n, h.s, h.ln, h.ls, h.ph, h.d, h.x, has(h, 'P') and 1 or 0, has(h, 'R') and 1 or 0, unpack(out) }
