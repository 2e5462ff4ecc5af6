-- KEYS: session. 6 id, 7 ph, 8 device, 9 epoch, 10 seq, 11 replied, 12 socket, 13 at, 14 window, 15 the socket whose
-- requests the asking node has seen, 16 dropped as it knows, 17 the socket that was retired, 18 expiry of the token,
-- 19 its turn; '' where it has none yet, 20 version of the client
local h, seq, at = load(ARGV[6], true), tonumber(ARGV[10]), tonumber(ARGV[13])
-- A base session is over with its socket, and not to be touched while it has one.
if h == nil or h.x ~= '1' or h.ph ~= ARGV[7] or h.d ~= ARGV[8] then return { '', unpack(out) } end
local turn = tonumber(ARGV[19]) or nextTurn(h)
if turn < tonumber(h.tt or '0') then return { 'late', unpack(out) } end
local lastSocket = h.s ~= '' and h.s or h.ls
local isOwn = ARGV[15] ~= '' and ARGV[15] == lastSocket
-- What came on that one may still be under way, and is known to its node alone [EXT4].
if lastSocket ~= '' and lastSocket ~= ARGV[17] and not isOwn then return { 'other', unpack(out) } end
local dropped = isOwn and tonumber(ARGV[16]) or tonumber(h.ud)
local ok = h.cl ~= '1' and h.br ~= '1' and h.e == ARGV[9] and tonumber(ARGV[11]) >= dropped
-- Where the node that had it died, nobody knows what its client has asked for: it asks again, and nothing takes effect
-- twice [EXT4].
ok = ok and not (h.n == '' and at - tonumber(h.lo) > tonumber(ARGV[14]))
if not ok or not reaches(h, seq) then
  put(h, 'br', '1')
  if h.n ~= '' then
    tell(h, 'X ' .. h.sid .. ' ' .. h.s)
    loseSocket(h, '0', ARGV[13])
  end
  return { '', unpack(out) }
end
if h.n ~= '' then tell(h, 'X ' .. h.sid .. ' ' .. h.s) end
h.n, h.s = me, ARGV[12]
call('HSET', h.key, 'n', me, 's', h.s, 'ln', '', 'ls', '', 'rd', '0', 'rf', ARGV[10], 'pk', '0', 'xp', ARGV[18], 'av', ARGV[20],
  'tt', turn)
call('ZREM', base .. 'd:' .. h.ph, h.sid)
index('a:', h)
-- Of these rings no pong said that its client has them; its seq does [TRACE1].
local rings = {}
for _, entry in ipairs(call('XRANGE', h.log, string.format('%d-0', tonumber(h.pv) + 1), string.format('%d-0', seq))) do
  if entry[2][2] == 'ringing' then rings[#rings + 1] = entry[2][4] end
end
prove(h, seq)
tellMedia(h, seq)
expire(h)
return { h.e, h.up, isOwn and 1 or 0, finishedOf(h, callsOf(h, 'PRVW')), tonumber(h.op), rings }
