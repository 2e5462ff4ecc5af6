-- The sessions of one participant, as every script sees them. One hash and one stream a session, all in one slot:
--   <base>s:<id>  n node and s id of its socket ('' without), ln ls the last ones, rd ready, rf ready from, e epoch, run,
--                 q last seq, pv proven seq, b bytes of the log, tr last seq that made room, lo lost at, lq of which socket and with which last seq, id idle since, cl closed by its client (1 for good, 2 not),
--                 br broken, x extended, d device, ph participant, up ud pk upstream, op opened at, oo over since open,
--                 tg the last turn that was given to who comes back, tt that of who has it now;
--                 P<call> place (1 settled, 0 not), Q<call> by which version it has it or has not, R<call> rings, V<call> last version told, O<call> told of its end,
--                 W<call> the last version told of the other side's absence, M<call> what its peer said last of its media,
--                 F<call> told of its end, of the last ones (fc has when), qc when places passed on of which there is a Q,
--                 N<call> the highest request of the peer that was taken, as <session> <n>, and U<call> the same
--                 and the ranges below it that were not, as <from>-<to>; Nk<call> the highest that was kept, Nh<call> that a
--                 node of 0.1.0 handed over at the gate, G<call> a gate (1 closed, 0 opened),
--                 K<call> bytes that are kept, or - where they were taken
--   <base>l:<id>  the log: an entry's id is its seq; k kind, c call, v version, a first appended at, t text
--   <base>k:<id>:<call>  relays that wait for the accept [REL2], each three elements:
--                 a source, its n, a text; <base>g:<id>:<call> the texts of those behind a gate
--   <base>a:<ph>  sessions with a socket, in order; <base>d:<ph> those without
-- ARGV: 1 base, 2 the asking node, 3 now, 4 window of finals, 5 longest window, 6 … of each script.
local base, me, now, windowMs, longestMs = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local call = redis.call
-- What the asking node is told at once; other nodes are told through their channels.
local out = {}
-- The history of writes that this store continues: another one after a restart and after every promotion.
local run = string.match(call('INFO', 'replication'), 'master_replid:(%w+)')

local function tell(h, message)
  if h.n == '' then return end
  if h.n == me then out[#out + 1] = message else call('PUBLISH', 'rw:n:' .. h.n, message) end
end

local function put(h, field, value)
  h[field] = value
  call('HSET', h.key, field, value)
end

local function drop(h, field)
  if h[field] == nil then return false end
  h[field] = nil
  call('HDEL', h.key, field)
  return true
end

-- Its client may come back to it, and finds its log whole [RES1].
local function mayResume(h) return h.x == '1' and h.cl ~= '1' and h.br ~= '1' end

-- With a socket, and for a session that may be resumed, the oldest make room [RES1].
local function trim(h, size, bytes)
  local last
  while size > 512 or bytes > 1048576 do
    local head = call('XRANGE', h.log, '-', '+', 'COUNT', 1)[1]
    bytes = bytes - #head[2][10]
    size = size - 1
    last = string.match(head[1], '%d+')
    call('XDEL', h.log, head[1])
  end
  -- The log of an extended one shows by itself what is missing.
  if last and h.x ~= '1' then put(h, 'tr', last) end
  return bytes
end

-- The last that it hears of a call, unless it takes a place in it after all.
local function isLast(kind) return kind == 'final' or kind == 'stop' end

-- What comes late of a call of whose end it was told is no news. That is remembered for a minute, of so many calls.
local function finish(h, name)
  if h['F' .. name] then return end
  local names = {}
  for each in string.gmatch(h.fc or '', '%S+') do names[#names + 1] = each end
  while names[1] and (#names >= 64 or now - tonumber(string.match(names[1], '^%d+')) > 60000) do
    -- Not every script has read the older ones.
    local field = 'F' .. string.match(table.remove(names, 1), ':(.*)')
    call('HDEL', h.key, field)
    h[field] = nil
  end
  names[#names + 1] = string.format('%.0f', now) .. ':' .. name
  put(h, 'F' .. name, '1')
  put(h, 'fc', table.concat(names, ' '))
end

-- A call that was answered elsewhere goes on, and the session hears no more of it: of so many the version is remembered.
local function pass(h, name)
  local names = {}
  for each in string.gmatch(h.sc or '', '%S+') do if each ~= name then names[#names + 1] = each end end
  if #names >= 32 then
    local oldest = table.remove(names, 1)
    if call('HEXISTS', h.key, 'P' .. oldest) == 0 then
      call('HDEL', h.key, 'V' .. oldest, 'W' .. oldest, 'Nk' .. oldest)
      h['V' .. oldest], h['W' .. oldest] = nil, nil
      tell(h, 'V ' .. h.sid .. ' ' .. h.s .. ' ' .. oldest)
    end
  end
  names[#names + 1] = name
  put(h, 'sc', table.concat(names, ' '))
end

-- The last request that was taken, where it is one of this sender.
local function lastTaken(h, field, source)
  local of, last = string.match(h[field] or '', '^(%S+) (%d+)$')
  return of == source and tonumber(last) or nil
end

-- The ranges are of this N: a node of before writes N alone, and then all up to it counts as taken.
local function hasRanges(h, name)
  local taken, noted = h['N' .. name] or '', h['U' .. name] or ''
  return string.sub(noted, 1, #taken + 1) == taken .. ' '
end

-- Not where a node of before held back a later one at the gate: what goes in front of it is not taken yet.
local function knowsUntaken(h, name, source)
  return not lastTaken(h, 'N' .. name, source) or hasRanges(h, name)
end

-- The requests of a sender that were not taken, as ranges in order; the last one has no end [EXT4].
local function untaken(h, name, source)
  local last, ranges = lastTaken(h, 'N' .. name, source), {}
  if not last then return { { 1, math.huge } } end
  if hasRanges(h, name) then
    for from, to in string.gmatch(h['U' .. name], ' (%d+)%-(%d+)') do ranges[#ranges + 1] = { tonumber(from), tonumber(to) } end
  end
  ranges[#ranges + 1] = { last + 1, math.huge }
  return ranges
end

-- What a node of before handed over at the gate.
local function wentThrough(h, name, source, n)
  local last = lastTaken(h, 'Nh' .. name, source)
  return last ~= nil and tonumber(n) <= last
end

-- Whether a request was taken before: 11 may have been taken and 10 refused, and 10 comes again.
local function isTaken(h, name, source, n)
  n = tonumber(n)
  if wentThrough(h, name, source, n) then return true end
  for _, range in ipairs(untaken(h, name, source)) do
    if n >= range[1] and n <= range[2] then return false end
  end
  return true
end

-- So many ranges are known; what is in an older one counts as taken. `...`: fields that go into the same write.
local function setUntaken(h, name, source, ranges, ...)
  local taken = string.format('%s %.0f', source, ranges[#ranges][1] - 1)
  local texts = { taken }
  for i = math.max(1, #ranges - 64), #ranges - 1 do
    texts[#texts + 1] = string.format('%.0f-%.0f', ranges[i][1], ranges[i][2])
  end
  h['N' .. name] = taken
  if #texts == 1 then
    drop(h, 'U' .. name)
    call('HSET', h.key, 'N' .. name, taken, ...)
  else
    h['U' .. name] = table.concat(texts, ' ')
    call('HSET', h.key, 'N' .. name, taken, 'U' .. name, h['U' .. name], ...)
  end
end

local function noteTaken(h, name, source, n, ...)
  local left = {}
  n = tonumber(n)
  for _, range in ipairs(untaken(h, name, source)) do
    local from, to = range[1], range[2]
    if n < from or n > to then left[#left + 1] = range
    else
      if from < n then left[#left + 1] = { from, n - 1 } end
      if n < to then left[#left + 1] = { n + 1, to } end
    end
  end
  setUntaken(h, name, source, left, ...)
end

-- What waits for the accept, or at a gate, is stored as its text.
local function kindOfKept(text) return string.sub(text, 1, 21) == '{"event":"call.media"' and 'media' or 'relay' end

-- Of the other side's absence: its versions are counted apart, for it goes beside what else a version tells [PEER1].
local function isPeerNews(h, name, version)
  if h.x ~= '1' or h['F' .. name] then return false end
  if tonumber(version) <= tonumber(h['W' .. name] or '0') then return false end
  put(h, 'W' .. name, version)
  return true
end

-- Whether a push tells the session something that it may know and does not know yet [ORD3, PLACE1].
local function isNews(h, kind, name, version)
  if kind == 'notice' and h.x ~= '1' then return false end
  if kind == 'relay' or kind == 'media' then return true end
  if kind == 'peer' then return isPeerNews(h, name, version) end
  if h['F' .. name] then return false end
  local last = h['V' .. name]
  if version ~= '' and last and tonumber(version) <= tonumber(last) then return false end
  if isLast(kind) then
    if drop(h, 'R' .. name) then
      tell(h, 'R ' .. h.sid .. ' ' .. h.s .. ' 0 ' .. name)
      h.stopped = true
    end
    drop(h, 'K' .. name)
    call('DEL', base .. 'k:' .. h.sid .. ':' .. name)
    if h.oo == '1' then put(h, 'O' .. name, '1') end
    if kind == 'final' then
      drop(h, 'V' .. name)
      drop(h, 'Q' .. name)
      call('HDEL', h.key, 'W' .. name)
      finish(h, name)
      return true
    end
  end
  if kind == 'ringing' then
    if h['R' .. name] then return false end
    put(h, 'R' .. name, '1')
    tell(h, 'R ' .. h.sid .. ' ' .. h.s .. ' 1 ' .. name)
  end
  if version ~= '' then put(h, 'V' .. name, version) end
  if kind == 'stop' then pass(h, name) end
  return true
end

local deliver

-- What its client, or whoever takes its places, is told comes after this seq.
local function heardSeq(h)
  if h.n ~= '' then return h.rd == '1' and h.q or h.rf end
  if mayResume(h) then
    local socket, seq = string.match(h.lq or '', '^(%S*) (%d+)$')
    -- A node of before does not say it: then it has heard all.
    return socket == h.ls and seq or h.q
  end
  return h.x == '1' and h.pv or '0'
end

-- Whether a session has yet to hear that its call was accepted: told twice, its client would offer twice [PLACE5].
local function awaitsState(h, name)
  for _, entry in ipairs(call('XRANGE', h.log, string.format('%d-0', (tonumber(heardSeq(h)) or 0) + 1), '+')) do
    if entry[2][2] == 'state' and entry[2][4] == name then return true end
  end
  return false
end

-- What is held back goes in front of the call's end: nobody opens the gate in time, or it was closed again by somebody who
-- did not know how far the call was told.
local function openAtEnd(h, name)
  if h['G' .. name] ~= '1' or h['F' .. name] then return end
  put(h, 'G' .. name, '0')
  local key = base .. 'g:' .. h.sid .. ':' .. name
  for _, text in ipairs(call('LRANGE', key, 0, -1)) do deliver(h, kindOfKept(text), name, '', text, ARGV[3]) end
  call('DEL', key)
end

-- Puts a push into the log: sent, kept, full or dropped, and its seq.
local function push(h, kind, name, version, text, at, source, n, forPlace)
  local numbered = source ~= nil and source ~= ''
  local isRelay = kind == 'relay' or kind == 'media'
  if isRelay then
    if forPlace == '1' and not h['P' .. name] then return 'elsewhere' end
    if numbered and isTaken(h, name, source, n) then return 'kept' end
    -- Nothing of a call comes after its end [ORD2]. Its place may be there for a moment longer: who asks looks again.
    if h['F' .. name] then return forPlace == '1' and 'elsewhere' or 'dropped' end
    if kind == 'media' then
      -- Whoever comes to have the place is told the last one [MEDIA1].
      put(h, 'M' .. name, text)
      if h.x ~= '1' then return 'dropped' end
    end
    if h['G' .. name] == '1' then
      call('RPUSH', base .. 'g:' .. h.sid .. ':' .. name, text)
      call('PEXPIRE', base .. 'g:' .. h.sid .. ':' .. name, 90000000)
      if numbered then noteTaken(h, name, source, n) end
      return 'kept'
    end
  elseif numbered and isTaken(h, name, source, n) then return 'dropped' end
  if kind == 'final' then openAtEnd(h, name) end
  if not isNews(h, kind, name, version) or kind == 'state' and awaitsState(h, name) then return 'dropped' end
  local bytes = tonumber(h.b)
  if h.n == '' then
    if not mayResume(h) and isRelay and (bytes + #text > 262144 or call('XLEN', h.log) >= 256) then return 'full' end
  end
  local seq = tonumber(h.q) + 1
  call('XADD', h.log, seq .. '-0', 'k', kind, 'c', name, 'v', version, 'a', at, 't', text)
  local size = call('XLEN', h.log)
  -- A new stream, also where the one of before was lost alone.
  if size == 1 then
    bytes = 0
    local ttl = call('PTTL', h.key)
    if ttl > 0 then call('PEXPIRE', h.log, ttl) end
  end
  bytes = bytes + #text
  if h.n ~= '' or mayResume(h) then bytes = trim(h, size, bytes) end
  h.q, h.b = tostring(seq), tostring(bytes)
  if numbered then noteTaken(h, name, source, n, 'q', h.q, 'b', h.b)
  else call('HSET', h.key, 'q', h.q, 'b', h.b) end
  if h.n == '' or h.rd ~= '1' then return 'kept', seq end
  return 'sent', seq
end

-- A base session is told the fields of the interface alone, also by a node that hands over what it finds here [EXT5].
local function textFor(h, kind, text)
  local more = kind == 'state' and h.x ~= '1' and string.find(text, ',"display_name":', 1, true)
  return more and string.sub(text, 1, more - 1) .. '}}' or text
end

-- The same, and whoever holds the socket is told.
function deliver(h, kind, name, version, text, at, source, n, forPlace)
  text = textFor(h, kind, text)
  local result, seq = push(h, kind, name, version, text, at, source, n, forPlace)
  if result == 'sent' then
    tell(h, 'E ' .. h.sid .. ' ' .. h.s .. ' ' .. h.e .. ' ' .. seq .. ' ' .. kind .. ' ' .. version .. ' ' .. name .. '\n' .. text)
  end
  return result, seq
end
