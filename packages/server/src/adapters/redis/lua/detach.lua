-- KEYS: session. 6 id, 7 socket, 8 clean ('2': its client closed it, and may come back), 9 at, 10 upstream, 11 dropped, 12 up to where it was sent the log of 13 this epoch
local h = load(ARGV[6], true)
if h == nil then return { -1, unpack(out) } end
if h.n == '' or h.s ~= ARGV[7] then return { 0, unpack(out) } end
-- Its node says so, or another one for it, because it is dead.
if h.n == me and ARGV[10] ~= '' then call('HSET', h.key, 'up', ARGV[10], 'ud', ARGV[11], 'pk', '0') end
-- Where that node lives after all, its client has to come back: nobody would ring it here.
if h.n ~= me then tell(h, 'W ' .. h.sid .. ' ' .. h.s) end
loseSocket(h, ARGV[8], ARGV[9], h.e == ARGV[13] and tonumber(ARGV[12]) or 0)
if isForgettable(h) then letGo(h) return { 1, unpack(out) } end
-- A client that connects and dies again and again does not fill the store [WS7].
local dead = base .. 'd:' .. h.ph
if call('ZCARD', dead) > 20 then
  for _, other in ipairs(each('d:', h.ph)) do
    if not has(other, 'P') then forget(other) break end
  end
end
return { 1, unpack(out) }
