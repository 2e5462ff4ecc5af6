-- KEYS: of each session its row, its log and the index of its participant. 1 owner, and then of each session: its fence,
-- 'all', 'over', 'part' or 'gone', how long it is remembered ('': as before), so many fields of its row and values (last its
-- owner, where this one gives it away: it may be written so more than once), '1' where its log is written anew, so many that
-- leave its begin, and so many entries that come to its end. Answers what was refused: which one, and why:
-- 'moved' where another owner has it with a socket, 'other' without one, 'missing' where nobody has, and 'earlier' where an
-- earlier owner wrote it: then also its copy, and the last entry of its log.
-- 'all' begins a row that is not there, or writes one of this owner anew; 'part' needs the row as this owner left it.
-- A row of an earlier owner is taken from that owner first, and nothing more. Its copy stays, and counts as not whole, until
-- this owner has seen it and writes 'over' it: a reply may be lost.
local owner, refused, i = ARGV[1], {}, 2
local origin, order = false, 0
for k = 1, #KEYS, 3 do
  local row, log = KEYS[k], KEYS[k + 1]
  local fence, what, ttl, fields = tonumber(ARGV[i]), ARGV[i + 1], ARGV[i + 2], tonumber(ARGV[i + 3])
  local from = i + 4
  local at = from + fields
  local leaving, coming = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  i = at + 3 + coming
  local newOwner = fields > 0 and ARGV[at - 2] == 'o' and ARGV[at - 1]
  local known = redis.call('HMGET', row, 'f', 'o')
  local last = tonumber(known[1] or '0')
  local isOthers = known[2] and known[2] ~= owner and known[2] ~= newOwner
  if last > fence or (isOthers and (last == fence or what == 'gone')) then
    refused[#refused + 1] = (k - 1) / 3
    refused[#refused + 1] = redis.call('HGET', row, 'k') == '1' and 'moved' or 'other'
  elseif what == 'gone' then
    redis.call('DEL', row, log)
    redis.call('ZREM', KEYS[k + 2], string.match(row, ':o:([^:]*)$'))
  elseif what == 'part' and last < fence then
    refused[#refused + 1] = (k - 1) / 3
    refused[#refused + 1] = 'missing'
  elseif (known[2] and known[2] ~= owner and last < fence) or (what == 'all' and redis.call('HGET', row, 'r') == '') then
    redis.call('HSET', row, 'o', owner, 'f', fence, 'k', '0', 'r', '')
    refused[#refused + 1] = (k - 1) / 3
    refused[#refused + 1] = 'earlier'
    refused[#refused + 1] = redis.call('HGET', row, 'c') or ''
    refused[#refused + 1] = redis.call('LINDEX', log, -1) or ''
  else
    if what ~= 'part' then
      -- A log that a server has from another one, or from a file, may lack what came last.
      origin = origin or string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')
      -- First, so that it is refused at maxmemory: after any other write Redis would take it.
      redis.call('HSET', row, 'o', owner, 'f', fence, 'r', origin)
      redis.call('DEL', log)
      local t = redis.call('TIME')
      order = order + 1
      redis.call('ZADD', KEYS[k + 2], 'NX', t[1] * 1000000 + t[2] + order, string.match(row, ':o:([^:]*)$'))
      redis.call('PEXPIRE', KEYS[k + 2], 90000000)
    elseif ARGV[at] == '1' then redis.call('DEL', log) end
    if fields > 0 then redis.call('HSET', row, unpack(ARGV, from, at - 1)) end
    if leaving > 0 then redis.call('LTRIM', log, leaving, -1) end
    local isNew = false
    if coming > 0 then isNew = redis.call('RPUSH', log, unpack(ARGV, at + 3, at + 2 + coming)) == coming end
    if ttl ~= '' then redis.call('PEXPIRE', row, ttl) end
    if ttl ~= '' or isNew then redis.call('PEXPIRE', log, math.max(redis.call('PTTL', row), 1)) end
  end
end
return refused
