-- KEYS: session. 6 id; 7 hash and 8 device of who comes back to it and needs a turn: the socket, the last one, who it is,
-- whether it is extended, whether it has a place, whether it rings, the turn that it has now, the turn that is given,
-- whether its client closed its last socket and has none
local h = load(ARGV[6])
if h == nil then h = read(ARGV[6]) end
if h == nil then return {} end
local turn = h.x == '1' and h.ph == ARGV[7] and h.d == ARGV[8] and nextTurn(h) or ''
local calls = { has(h, 'P') and 1 or 0, has(h, 'R') and 1 or 0 }
return { h.n, h.s, h.ln, h.ls, h.ph, h.d, h.x, calls[1], calls[2], h.tt or '0', turn, h.n == '' and h.cl ~= '0' and 1 or 0, unpack(out) }
