-- KEYS: index. To every session where the call rings [PLACE1]. 6 ph, 7 kind, 8 call, 9 version, 10 text, 11 … except
local except, name = {}, ARGV[8]
for i = 11, #ARGV do except[ARGV[i]] = true end
for _, letter in ipairs({ 'a:', 'd:' }) do
  for _, h in ipairs(each(letter, ARGV[6])) do
    if h['R' .. name] then
      -- It may have the place by now, from the session of before.
      if except[h.sid] or (ARGV[7] == 'stop' and h['P' .. name]) then
        drop(h, 'R' .. name)
        tell(h, 'R ' .. h.sid .. ' ' .. h.s .. ' 0 ' .. name)
        -- Whoever is late to say that it rings is not believed.
        if ARGV[7] == 'final' then
          drop(h, 'V' .. name)
          drop(h, 'K' .. name)
          call('DEL', base .. 'k:' .. h.sid .. ':' .. name)
          finish(h, name)
          tell(h, 'F ' .. h.sid .. ' ' .. h.s .. ' ' .. name)
        else
          if tonumber(h['V' .. name] or '0') < tonumber(ARGV[9]) then put(h, 'V' .. name, ARGV[9]) end
          pass(h, name)
        end
      else deliver(h, ARGV[7], name, ARGV[9], ARGV[10], ARGV[3]) end
      becameIdle(h)
      if isLast(ARGV[7]) then passFinalOn(h, name) end
    end
  end
end
return out
