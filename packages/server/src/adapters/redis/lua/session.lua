-- Whole sessions, and what waits in them; after log.lua.
local liveTtl, placeTtl, indexTtl, graceMs = 900000, 90000000, 90000000, 60000

local function dropAll(h, letter)
  for field in pairs(h) do
    if string.sub(field, 1, 1) == letter then call('HDEL', h.key, field) h[field] = nil end
  end
end

-- Everything was lost that was written since: the log begins again [RES2, RES4].
local function void(h)
  call('DEL', h.log)
  dropAll(h, 'V')
  drop(h, 'tr')
  h.e = string.sub(redis.sha1hex(run .. h.e .. h.sid), 1, 16)
  -- Of an extended one the first of the new log is for what is told of the loss.
  local first = h.x == '1' and '1' or '0'
  h.run, h.q, h.pv, h.rf, h.b = run, first, '0', first, '0'
  call('HSET', h.key, 'e', h.e, 'run', run, 'q', first, 'pv', '0', 'rf', first, 'b', '0')
  if h.x == '1' then put(h, 'rd', '0') end
  tell(h, 'L ' .. h.sid .. ' ' .. h.s .. ' ' .. h.e)
end

local function has(h, letter)
  for field in pairs(h) do
    if string.sub(field, 1, 1) == letter then return true end
  end
  return false
end
-- Fields of some letters, and their values.
local function callsOf(h, letters)
  local calls = {}
  for field, value in pairs(h) do
    if string.find(letters, string.sub(field, 1, 1), 1, true) then
      calls[#calls + 1] = field
      calls[#calls + 1] = value
    end
  end
  return calls
end
-- The same of calls of whose end it was told, the last ones last: who remembers them forgets the first ones first.
local function finishedOf(h, calls)
  for name in string.gmatch(h.fc or '', '%d+:(%S+)') do
    if h['F' .. name] then
      calls[#calls + 1] = 'F' .. name
      calls[#calls + 1] = '1'
    end
  end
  return calls
end
local function isIdle(h) return not has(h, 'P') and not has(h, 'R') end

-- The entries that pass stay.
local function retain(h, passes)
  local bytes, gone = 0, {}
  for _, entry in ipairs(call('XRANGE', h.log, '-', '+')) do
    local f = entry[2]
    if passes(f[2], f[4], tonumber(string.match(entry[1], '%d+')), tonumber(f[8])) then bytes = bytes + #f[10]
    else gone[#gone + 1] = entry[1] end
  end
  if #gone == 0 then return end
  for i = 1, #gone, 500 do call('XDEL', h.log, unpack(gone, i, math.min(i + 499, #gone))) end
  if bytes == 0 then call('DEL', h.log) end
  put(h, 'b', tostring(bytes))
end

local function forget(h)
  call('DEL', h.key, h.log)
  call('ZREM', base .. 'd:' .. h.ph, h.sid)
  call('ZREM', base .. 'a:' .. h.ph, h.sid)
end

local function isForgettable(h)
  if mayResume(h) then return false end
  return h.b == '0' and isIdle(h)
end

-- Nothing waits in it. Whoever tells late of a place that it had has to find that it passed on: for so long it stays.
local function letGo(h)
  if not has(h, 'Q') then return forget(h) end
  call('DEL', h.log)
  call('PEXPIRE', h.key, graceMs)
end

-- What may be forgotten goes by itself in the end; a session with a place when its call is long over.
local function expire(h)
  if has(h, 'P') then
    call('PEXPIRE', h.key, placeTtl)
    call('PEXPIRE', h.log, placeTtl)
  else
    local ttl = h.n ~= '' and liveTtl or has(h, 'R') and liveTtl or longestMs + graceMs
    call('PEXPIRE', h.key, ttl)
    call('PEXPIRE', h.log, ttl)
  end
end

local function becameIdle(h)
  if h.n == '' and isIdle(h) then put(h, 'id', tostring(ARGV[3])) end
end

-- One that waits and whose time is over is not there any more.
local function isOver(h)
  if h.n ~= '' then return false end
  if not mayResume(h) and h.b ~= '0' then
    retain(h, function(kind, _, _, at) return not isLast(kind) or now - at < windowMs end)
    if isForgettable(h) then return true end
  end
  return isIdle(h) and now - tonumber(h.id) >= longestMs
end

-- A session as it is stored, whatever became of its log.
local function read(sid)
  local h = { sid = sid, key = base .. 's:' .. sid, log = base .. 'l:' .. sid }
  local found = call('HGETALL', h.key)
  if #found == 0 then return nil end
  for i = 1, #found, 2 do h[found[i]] = found[i + 1] end
  return h
end

-- Its log was lost, and it has a socket: whoever holds that knows what it was told, and begins the log again [RES4].
local function waitsForHolder(h) return h.run ~= run and h.n ~= '' end

-- The same, and a log that was lost begins again; nil also where that is its holder's to do, and true then.
local function load(sid, isHolders)
  local h = read(sid)
  if h == nil then return nil end
  if waitsForHolder(h) and not isHolders then
    if h.n ~= me then tell(h, 'W ' .. h.sid .. ' ' .. h.s) end
    return nil, true
  end
  if h.run ~= run then void(h) end
  if isOver(h) then forget(h) return nil end
  return h
end

-- Every session of an index, in its order.
local function each(letter, ph)
  local all, key = {}, base .. letter .. ph
  for _, sid in ipairs(call('ZRANGE', key, 0, -1)) do
    local h, waits = load(sid)
    if h then all[#all + 1] = h elseif not waits then call('ZREM', key, sid) end
  end
  return all
end

local function index(letter, h)
  local key = base .. letter .. h.ph
  local last = call('ZRANGE', key, -1, -1, 'WITHSCORES')
  call('ZADD', key, 'NX', (tonumber(last[2]) or 0) + 1, h.sid)
  call('PEXPIRE', key, indexTtl)
end

-- Of several that come back at once the newest wins, however slow one before it is [RES1].
local function nextTurn(h) return call('HINCRBY', h.key, 'tg', 1) end

-- Whether everything after a seq is in the log.
local function reaches(h, seq)
  local q = tonumber(h.q)
  local first = call('XRANGE', h.log, '-', '+', 'COUNT', 1)[1]
  first = first and tonumber(string.match(first[1], '%d+')) or q + 1
  return seq <= q and seq >= first - 1
end

-- Of a base session only what is not proven stays, but for the calls about which it has not spoken [PLACE2].
local function forgetProven(h)
  if h.x == '1' or h.b == '0' then return end
  local proven = tonumber(h.pv)
  retain(h, function(_, name, seq) return seq > proven or h['P' .. name] == '0' end)
end

-- What the peers of its calls send, as they said last, where its client does not find it after what it saw [MEDIA1].
local function tellMedia(h, seq)
  local told = {}
  for _, entry in ipairs(call('XRANGE', h.log, string.format('%d-0', seq + 1), '+')) do
    if entry[2][2] == 'media' then told[entry[2][4]] = true end
  end
  local calls = callsOf(h, 'M')
  for i = 1, #calls, 2 do
    local name = string.sub(calls[i], 2)
    if not told[name] then push(h, 'media', name, '', calls[i + 1], ARGV[3]) end
  end
end

local function prove(h, seq)
  -- What was not given out yet cannot have arrived: the proof is of a log that was lost meanwhile.
  if seq > tonumber(h.q) or seq <= tonumber(h.pv) then return end
  put(h, 'pv', tostring(seq))
  forgetProven(h)
end

-- Its socket is gone, and with it what nobody will ask for.
local function loseSocket(h, clean, at, sent)
  local lost = h.s .. ' ' .. h.q
  call('HSET', h.key, 'ln', h.n, 'ls', h.s, 'n', '', 's', '', 'rd', '0', 'lo', at, 'lq', lost, 'id', at, 'cl', clean)
  h.ln, h.ls, h.n, h.s, h.rd, h.lo, h.lq, h.id, h.cl = h.n, h.s, '', '', '0', at, lost, at, clean
  if clean == '1' then
    retain(h, function(_, name, seq) return seq > sent or h['P' .. name] == '0' end)
  end
  if not mayResume(h) then retain(h, function(kind) return kind ~= 'ringing' end) end
  call('ZREM', base .. 'a:' .. h.ph, h.sid)
  index('d:', h)
  expire(h)
end

-- What its client was not proven to have received, for whoever takes its place [PLACE2].
local function takeUnproven(h, wanted)
  local taken, ids, proven = {}, {}, tonumber(h.pv)
  local function isUndelivered(kind, name, seq)
    if kind == 'ringing' or not wanted(kind, name) then return false end
    return h.x ~= '1' or seq > proven or h['P' .. name] == '0'
  end
  for _, entry in ipairs(call('XRANGE', h.log, '-', '+')) do
    local f = entry[2]
    if isUndelivered(f[2], f[4], tonumber(string.match(entry[1], '%d+'))) then taken[#taken + 1] = f end
  end
  if #taken > 0 and h.x == '1' then put(h, 'br', '1') end
  if #taken > 0 and (h.x ~= '1' or h.n == '') then
    retain(h, function(kind, name, seq) return not isUndelivered(kind, name, seq) end)
  end
  return taken
end

-- Whether what is said of a place is news: several nodes may tell of one call, and one of them late.
local function isLate(h, name, version)
  return h['F' .. name] ~= nil or tonumber(version) < tonumber(h['Q' .. name] or '0')
end

local function hold(h, name, settled, version)
  if isLate(h, name, version) then return false end
  local before = h['P' .. name]
  put(h, 'P' .. name, settled)
  put(h, 'Q' .. name, version)
  if before == '0' and settled == '1' then forgetProven(h) end
  tell(h, 'P ' .. h.sid .. ' ' .. h.s .. ' ' .. settled .. ' ' .. name)
  return true
end

-- Of a place that passed on the versions stay: it may come back.
local function release(h, name)
  local before = h['P' .. name]
  for _, field in ipairs({ 'P', 'R', 'N', 'U', 'Nk', 'Nh', 'G', 'K', 'M' }) do drop(h, field .. name) end
  call('DEL', base .. 'k:' .. h.sid .. ':' .. name, base .. 'g:' .. h.sid .. ':' .. name)
  if before == '0' then forgetProven(h) end
  tell(h, 'P ' .. h.sid .. ' ' .. h.s .. ' - ' .. name)
  if h.n ~= '' then return end
  -- Whoever comes back is told how the call ended, and nothing else of it [WS4].
  if not mayResume(h) then retain(h, function(kind, of) return of ~= name or isLast(kind) end) end
  becameIdle(h)
end

-- A place that passed on: whoever tells of it late finds that. It is remembered for a minute, of so many calls.
local function notePassed(h, name)
  local passed = {}
  for each in string.gmatch(h.qc or '', '%S+') do
    local at, other = string.match(each, '^(%d+):(.*)$')
    if other ~= name then passed[#passed + 1] = { tonumber(at), other } end
  end
  if name then passed[#passed + 1] = { now, name } end
  local texts = {}
  for i, each in ipairs(passed) do
    if #passed - i < 64 and now - each[1] <= graceMs then texts[#texts + 1] = string.format('%.0f:%s', each[1], each[2])
    elseif not h['P' .. each[2]] then drop(h, 'Q' .. each[2]) end
  end
  if #texts > 0 then put(h, 'qc', table.concat(texts, ' ')) else drop(h, 'qc') end
end

-- Final notices that a dead socket's session was not proven to have, for a new one of the same device [WS4].
local function giveFinals(source, target, only, which)
  if source.d ~= '' and source.d ~= target.d then return end
  -- One dead socket's notice is for one session that comes back, and nobody hears the same twice.
  local function isWanted(kind, name)
    if which ~= nil and kind ~= which then return false end
    return isLast(kind) and (only == nil or only == name) and not target['P' .. name] and not target['O' .. name]
  end
  local entries = {}
  if source.d == '' then
    -- From before a restart: how many sockets it stands for is not known.
    for _, entry in ipairs(call('XRANGE', source.log, '-', '+')) do
      if isWanted(entry[2][2], entry[2][4]) then entries[#entries + 1] = entry[2] end
    end
  else entries = takeUnproven(source, isWanted) end
  for _, f in ipairs(entries) do deliver(target, f[2], f[4], f[6], f[10], f[8]) end
  if isForgettable(source) then letGo(source) end
end

-- A notice that came when its device was already back: whoever connected meanwhile has looked and found nothing.
local function passFinalOn(source, name)
  if source.n ~= '' or source.x == '1' then return end
  for _, target in ipairs(each('a:', source.ph)) do
    local came = target.d == source.d and tonumber(target.op) >= tonumber(source.lo)
    -- One that has yet to look finds it.
    if came and target.oo ~= '1' then return giveFinals(source, target, name) end
  end
end
