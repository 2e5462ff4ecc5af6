-- KEYS: session. Where its log is, for the node that holds its socket; it is remembered for longer. 6 id, 7 socket,
-- 8 what was handed over, 9 of which epoch: a log of that epoch that is shorter is another one
local h, seq = load(ARGV[6]), tonumber(ARGV[8])
if h == nil then return { 'gone' } end
if h.s ~= ARGV[7] then return { 'taken' } end
local key = base .. 'a:' .. h.ph
-- What was not handed over yet made room for more, or the log was lost alone; or the index was, and who looked for the
-- participant's sessions did not find this one. Its holder begins the log again; of its calls more is known here.
if h.e == ARGV[9] and (not call('ZSCORE', key, h.sid) or h.x == '1' and seq < tonumber(h.q) and not reaches(h, seq)) then
  put(h, 'run', '')
  return { 'gone', '', callsOf(h, 'PR'), unpack(out) }
end
if h.e == ARGV[9] and tonumber(h.q) < seq then void(h) end
if h.qc then notePassed(h) end
expire(h)
call('PEXPIRE', key, indexTtl)
return { h.e, h.q, callsOf(h, 'PR'), unpack(out) }
