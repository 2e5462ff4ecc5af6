import type { Patch } from './mutants.ts'

/** Faults of call/decide.ts and call/call.ts, of answers, clocks and notices: one dropped, a comparison weakened. */

const answers: readonly Patch[] = [
  [
    'accept: the caller is not told',
    "      { to: { place: 'caller' }, event: 'call.accepted', data: acceptedData(next) },\n",
    '',
  ],
  [
    'accept: the other sessions ring on',
    "      {\n        to: { place: 'rung', except: [...silenced, actor.sessionId] },\n        event: 'call.cancelled',\n        data: elsewhereData(next, 'answered_elsewhere', by),\n      },\n",
    '',
  ],
  ['accept: silenced sessions are told', 'except: [...silenced, actor.sessionId]', 'except: [actor.sessionId]'],
  [
    'accept: the accepting session is told that it is over',
    'except: [...silenced, actor.sessionId]',
    'except: [...silenced]',
  ],
  [
    'accept: the place is not settled',
    'calleePlace: placeFor(actor, true),\n    acceptedAt',
    'calleePlace: placeFor(actor, false),\n    acceptedAt',
  ],
  [
    'reject: the caller is not told',
    "      { to: { place: 'caller' }, event: 'call.rejected', data: overData(next, by) },\n",
    '',
  ],
  [
    'reject: the other sessions ring on',
    "      {\n        to: { place: 'rung', except: [...call.silenced, actor.sessionId] },\n        event: 'call.cancelled',\n        data: { ...overData(next, by), reason: 'rejected_elsewhere' },\n      },\n",
    '',
  ],
  ['reject: silenced sessions are told', 'except: [...call.silenced, actor.sessionId]', 'except: [actor.sessionId]'],
  [
    'reject: the rejecting session is told',
    'except: [...call.silenced, actor.sessionId]',
    'except: [...call.silenced]',
  ],
  [
    'reject: the others are told the reason',
    "data: { ...overData(next, by), reason: 'rejected_elsewhere' }",
    'data: overData(next, by)',
  ],
  [
    'silence: said twice, noted twice',
    'const isNews = !call.silenced.includes(actor.sessionId)',
    'const isNews = true',
  ],
  ['silence: who said it before is forgotten', '[...rememberedOf(call, rung), actor.sessionId]', '[actor.sessionId]'],
  ['silence: who is gone is remembered for ever', 'silenced.length < mostSilenced ? silenced :', 'true ? silenced :'],
  ['silence: who is gone is forgotten at once', 'silenced.length < mostSilenced ? silenced :', 'false ? silenced :'],
  ['silence: the first busy session ends the ringing', 'rung.every(', 'rung.some('],
  [
    'silence: the last busy session does not end the ringing',
    "if (rung.every((sessionId) => silenced.includes(sessionId))) return reject({ ...call, silenced }, actor, 'busy', now)",
    '',
  ],
  ['silence: said twice is news', 'if (!isNews) return unchanged(call)', ''],
  [
    'silence: the last one forgets the others',
    "return reject({ ...call, silenced }, actor, 'busy', now)",
    "return reject({ ...call, silenced: [] }, actor, 'busy', now)",
  ],
]

const clocks: readonly Patch[] = [
  ['shift: lost clocks stay', "place.state === 'vacant' ? { ...place, since: place.since + ms } : place", 'place'],
  [
    'shift: held places get a clock',
    "(place.state === 'vacant' ? { ...place, since: place.since + ms } : place))\n  const shifted",
    '({ ...place, since: (place.since ?? 0) + ms }))\n  const shifted',
  ],
  ['shift: the longest call stays', '{ ...next, acceptedAt: next.acceptedAt + ms }', 'next'],
  ['shift: the end of the ringing stays', '{ ...next, ringExpiresAt: next.ringExpiresAt + ms }', 'next'],
  ['shift: an answered call still rings', 'isAnswered(next)\n', "(next.status !== 'accepted' && isAnswered(next))\n"],
  ['may speak: the holder may not', 'place.sessionId === actor.sessionId || place.state', 'place.state'],
  ['may speak: a vacant place is not taken', "actor.sessionId || place.state === 'vacant' ||", 'actor.sessionId ||'],
  ['may speak: a place is kept by connecting alone', ' || !place.settled', ''],
  ['may speak: a place is lost by speaking', '!place.settled', 'place.settled'],
  [
    'may speak: everybody',
    "return place.sessionId === actor.sessionId || place.state === 'vacant' || !place.settled",
    'return true',
  ],
  [
    'with place: the sides are exchanged',
    "if (side === 'caller') return { ...call, callerPlace: place }",
    "if (side === 'callee') return { ...call, callerPlace: place }",
  ],
  [
    'map places: an unchanged ringing call is a new one',
    'return callerPlace === call.callerPlace ? call : { ...call, callerPlace }',
    'return { ...call, callerPlace }',
  ],
  [
    'map places: an unchanged answered call is a new one',
    'if (callerPlace === call.callerPlace && calleePlace === call.calleePlace) return call',
    '',
  ],
  [
    'map places: the callee does not count',
    'if (callerPlace === call.callerPlace && calleePlace === call.calleePlace) return call',
    'if (callerPlace === call.callerPlace) return call',
  ],
  [
    'map places: the caller does not count',
    'if (callerPlace === call.callerPlace && calleePlace === call.calleePlace) return call',
    'if (calleePlace === call.calleePlace) return call',
  ],
  [
    'map places: an answered call has one place',
    "if (call.status === 'ringing') return callerPlace",
    'if (true) return callerPlace',
  ],
]

const ends: readonly Patch[] = [
  ['time: before it is due', 'if (deadline > now) return unchanged(call)', ''],
  ['time: a moment late', 'if (deadline > now)', 'if (deadline >= now)'],
  ['time: never', 'if (deadline > now)', 'if (deadline <= now)'],
  [
    'time: a ringing call ends as answered',
    "if (call.status === 'ringing') {\n    if (deadline",
    'if (false) {\n    if (deadline',
  ],
  [
    'time: nothing is missed',
    "if (deadline === call.ringExpiresAt) return over(call, 'missed', 'no_answer', null, now)",
    '',
  ],
  ['time: everything is missed', 'if (deadline === call.ringExpiresAt) return over', 'return over'],
  [
    'time: every call was the longest',
    "deadline === call.acceptedAt + durations.maxDurationMs ? 'max_duration' : 'peer_lost'",
    "'max_duration'",
  ],
  [
    'time: no call is the longest',
    "deadline === call.acceptedAt + durations.maxDurationMs ? 'max_duration' : 'peer_lost'",
    "'peer_lost'",
  ],
  ['told: nobody knows', 'place.sessionId === knowing?.sessionId', 'false'],
  ['told: everybody knows', 'place.sessionId === knowing?.sessionId', 'true'],
  ['told: everybody knows what somebody did', 'place.sessionId === knowing?.sessionId', 'knowing !== null'],
  ['told: a missed call is cancelled', "if (next.status === 'missed') notices", "if (next.status === 'x') notices"],
  ['told: a cancelled call ended', "next.status === 'cancelled' ? 'call.cancelled' : 'call.ended'", "'call.ended'"],
  [
    'told: an ended call is cancelled',
    "next.status === 'cancelled' ? 'call.cancelled' : 'call.ended'",
    "'call.cancelled'",
  ],
  ['told: not the caller', "if (!knows(before.callerPlace)) tell({ place: 'caller' })", ''],
  ['told: the caller always', 'if (!knows(before.callerPlace)) tell', 'tell'],
  [
    'told: not the rung sessions',
    "if (before.status === 'ringing') tell({ place: 'rung', except: before.silenced })\n  else if",
    "if (before.status === 'ringing') {\n  } else if",
  ],
  ['told: the silenced sessions too', 'except: before.silenced }', 'except: [] }'],
  ['told: not the callee', "else if (!knows(before.calleePlace)) tell({ place: 'callee' })", ''],
  ['told: the callee always', 'else if (!knows(before.calleePlace)) tell', 'else tell'],
  ['end: the place of the callee is forgotten', 'calleePlace: answered ? call.calleePlace : null', 'calleePlace: null'],
  ['end: the answer is forgotten', 'acceptedAt: answered ? call.acceptedAt : null', 'acceptedAt: null'],
  ['end: the connection is forgotten', 'connectedAt: answered ? call.connectedAt : null', 'connectedAt: null'],
]

export const placeFaults: readonly Patch[] = [...answers, ...clocks, ...ends]

export const callFaults: readonly Patch[] = [
  ['side: another product is the same', '  if (call.product !== participant.product) return undefined\n', ''],
  [
    'side: another role is the same',
    'party.userId === participant.userId && party.role === participant.role',
    'party.userId === participant.userId',
  ],
  [
    'side: another user is the same',
    'party.userId === participant.userId && party.role === participant.role',
    'party.role === participant.role',
  ],
  [
    'live: a ringing call is not',
    "call.status === 'ringing' || call.status === 'accepted'",
    "call.status === 'accepted'",
  ],
  [
    'live: an accepted call is not',
    "call.status === 'accepted' || call.status === 'connected'\n}\n\nexport function isAnswered",
    "call.status === 'connected'\n}\n\nexport function isAnswered",
  ],
  [
    'place: a ringing callee has one',
    "return call.status === 'ringing' ? null : call.calleePlace",
    "return call.status === 'ringing' ? call.callerPlace : call.calleePlace",
  ],
  ['deadline: a held caller is lost too', "if (callerPlace.state === 'held') return call.ringExpiresAt", ''],
  ['deadline: a lost caller is waited for', "if (callerPlace.state === 'held') return", 'return'],
  ['deadline: the later one counts', 'return Math.min(call.ringExpiresAt', 'return Math.max(call.ringExpiresAt'],
  [
    'deadline: a lost peer is waited for',
    "if (place.state === 'vacant') deadline",
    "if (place.state === 'x') deadline",
  ],
  [
    'deadline: a peer lost last counts',
    'deadline = Math.min(deadline, place.since',
    'deadline = Math.max(deadline, place.since',
  ],
  ['deadline: only the caller is lost', 'of [callerPlace, calleePlace]', 'of [callerPlace]'],
  ['deadline: nobody hangs up by closing', '!isClosed(callerPlace) || !isClosed(calleePlace)', 'true'],
  ['deadline: one who closes hangs up', '!isClosed(callerPlace) || !isClosed', '!isClosed'],
  [
    'deadline: who closed first counts',
    'Math.max(callerPlace.since, calleePlace.since)',
    'Math.min(callerPlace.since, calleePlace.since)',
  ],
  [
    'deadline: who is lost has hung up',
    "place.state === 'vacant' && place.closed === true",
    "place.state === 'vacant'",
  ],
]
