-- KEYS: session. 6 id, 7 ph, 8 device, 9 extended, 10 socket ('' opens one without), 11 nonce, 12 at, 13 expiry of the
-- token, 14 version of the client; 15 … fields and values of a log that begins again under a live socket [RES4]
local sid, socket, at = ARGV[6], ARGV[10], math.max(now, tonumber(ARGV[12]))
local old = read(sid)
if old and not waitsForHolder(old) then
  local found = load(sid)
  if found then return { found.s == socket and found.e or '', unpack(out) } end
  old = nil
end
local h = { sid = sid, key = KEYS[1], log = base .. 'l:' .. sid }
if old and socket ~= '' then
  if old.s ~= socket then return { '', unpack(out) } end
  -- What its holder does not know better stays: what was taken of whom, what is kept.
  h = old
  for _, letter in ipairs({ 'P', 'R', 'V', 'W' }) do dropAll(h, letter) end
elseif old then forget(old) end
h.ph, h.n, h.b = ARGV[7], socket ~= '' and me or '', '0'
call('DEL', h.log)
drop(h, 'tr')
call('HSET', h.key, 'ph', ARGV[7], 'd', ARGV[8], 'x', ARGV[9], 'n', h.n, 's', socket, 'ln', '', 'ls', '', 'rd', '0',
  'rf', '0', 'e', ARGV[11], 'run', run, 'q', '0', 'pv', '0', 'b', '0', 'lo', at, 'id', at, 'cl', '0', 'br', '0',
  'up', '', 'ud', '0', 'pk', '0', 'op', at, 'xp', ARGV[13], 'av', ARGV[14])
if #ARGV == 14 and socket ~= '' then put(h, 'oo', '1') end
-- Of calls that are over, those of which its holder has not heard yet are the last ones.
local unheard = finishedOf(h, {})
dropAll(h, 'F')
drop(h, 'fc')
for i = 15, #ARGV, 2 do
  local field = ARGV[i]
  if string.sub(field, 1, 1) == 'F' then finish(h, string.sub(field, 2)) else put(h, field, ARGV[i + 1]) end
end
for i = 1, #unheard, 2 do finish(h, string.sub(unheard[i], 2)) end
index(socket ~= '' and 'a:' or 'd:', h)
expire(h)
return { h.n == '' and '' or ARGV[11], unpack(out) }
