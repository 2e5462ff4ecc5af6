-- KEYS: session, session. What waits about a call goes from one log to another, in order [PLACE2]. 6 call, 7 from, 8 to
local source, target = load(ARGV[7]), load(ARGV[8])
if source == nil or target == nil or source.ph ~= target.ph then return out end
for _, f in ipairs(takeUnproven(source, function(_, name) return name == ARGV[6] end)) do
  deliver(target, f[2], f[4], f[6], f[10], f[8])
end
return out
