-- KEYS: index. 6 ph; 7 'owing' 8 device 9 but this one: those that have not proven to have a final notice [PLACE4];
-- 7 'all' 8 until when they were opened 9 the call that is to ring there began then [WS5]. Each with the node that holds its socket, the socket, the device, whether it is extended, when it was opened, and the version of its client.
local found = {}
for _, h in ipairs(each('a:', ARGV[6])) do
  local wanted = ARGV[7] ~= 'owing' and tonumber(h.op) <= tonumber(ARGV[8])
  -- A session that an older version opened has no expiry.
  if wanted and (h.xp or '') ~= '' then wanted = tonumber(h.xp) > tonumber(ARGV[9]) end
  if ARGV[7] == 'owing' and h.sid ~= ARGV[9] and h.d == ARGV[8] then
    local from = h.x == '1' and tonumber(h.pv) + 1 or 1
    for _, entry in ipairs(call('XRANGE', h.log, from, '+')) do
      if isLast(entry[2][2]) then wanted = true break end
    end
  end
  if wanted then
    found[#found + 1] = h.sid
    found[#found + 1] = h.n
    found[#found + 1] = h.s
    found[#found + 1] = h.d
    found[#found + 1] = h.x
    found[#found + 1] = h.op
    -- A session that an older version opened has none.
    found[#found + 1] = h.av or ''
  end
end
local answer = { #found }
for _, each in ipairs(found) do answer[#answer + 1] = each end
for _, message in ipairs(out) do answer[#answer + 1] = message end
return answer
