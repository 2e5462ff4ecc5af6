-- KEYS: session. Final notices of a participant's dead sockets, for a new session of the same device [WS4].
-- 6 id, 7 device
local target = load(ARGV[6])
if target == nil or target.oo ~= '1' then return out end
for _, source in ipairs(each('d:', target.ph)) do
  if source.d == '' or source.d == ARGV[7] then
    -- One dead socket's notice is for one session that comes back, and nobody hears the same twice.
    local function isOwed(kind, name) return kind == 'final' and not target['P' .. name] and not target['O' .. name] end
    local entries = {}
    if source.d == '' then
      -- From before a restart: how many sockets it stands for is not known.
      for _, entry in ipairs(call('XRANGE', source.log, '-', '+')) do
        if isOwed(entry[2][2], entry[2][4]) then entries[#entries + 1] = entry[2] end
      end
    else entries = takeUnproven(source, isOwed) end
    for _, f in ipairs(entries) do deliver(target, f[2], f[4], f[6], f[10], f[8]) end
    if isForgettable(source) then forget(source) end
  end
end
drop(target, 'oo')
dropAll(target, 'O')
return out
