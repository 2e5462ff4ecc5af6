-- KEYS: index. 6 ph; 7 'owing' 8 device 9 but this one: those that have not proven to have a final notice [PLACE4]
local found = {}
for _, h in ipairs(each('a:', ARGV[6])) do
  if ARGV[7] ~= 'owing' then found[#found + 1] = h.sid
  elseif h.sid ~= ARGV[9] and h.d == ARGV[8] then
    local from = h.x == '1' and tonumber(h.pv) + 1 or 1
    for _, entry in ipairs(call('XRANGE', h.log, from, '+')) do
      if entry[2][2] == 'final' then found[#found + 1] = h.sid break end
    end
  end
end
return { #found, unpack(found) }
