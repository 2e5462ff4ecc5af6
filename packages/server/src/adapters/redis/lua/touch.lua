-- KEYS: session. 6 id, 7 what, 8 call or seq, 9 settled
local h = load(ARGV[6])
if h == nil then return out end
local what, name = ARGV[7], ARGV[8]
if what == 'prove' then prove(h, tonumber(name)) return out end
if what == 'ring' then
  if not h['R' .. name] then
    put(h, 'R' .. name, '1')
    tell(h, 'R ' .. h.sid .. ' ' .. h.s .. ' 1 ' .. name)
  end
elseif what == 'hold' then
  local before = h['P' .. name]
  put(h, 'P' .. name, ARGV[9])
  if before == '0' and ARGV[9] == '1' then forgetProven(h) end
  tell(h, 'P ' .. h.sid .. ' ' .. h.s .. ' ' .. ARGV[9] .. ' ' .. name)
else
  local before = h['P' .. name]
  drop(h, 'P' .. name)
  if before == '0' then forgetProven(h) end
  drop(h, 'R' .. name)
  drop(h, 'V' .. name)
  tell(h, 'P ' .. h.sid .. ' ' .. h.s .. ' - ' .. name)
  if h.n == '' then
    -- Whoever comes back is told how the call ended, and nothing else of it [WS4].
    if h.x ~= '1' then retain(h, function(kind, of) return of ~= name or kind == 'final' end) end
    if isForgettable(h) then forget(h) return out end
    becameIdle(h)
  end
end
expire(h)
return out
