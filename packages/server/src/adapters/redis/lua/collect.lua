-- KEYS: session. Final notices of a participant's dead sockets, for a new session of the same device [WS4].
-- 6 id, 7 device
local target = load(ARGV[6])
if target == nil or target.oo ~= '1' then return out end
-- Where one of its sockets had the place, the device hears how the call ended, not that another socket answered.
for _, which in ipairs({ 'final', 'stop' }) do
  for _, source in ipairs(each('d:', target.ph)) do giveFinals(source, target, nil, which) end
end
drop(target, 'oo')
dropAll(target, 'O')
return out
