import type { Patch } from './mutants.ts'

/** Faults of call/decide.ts: who comes, goes and is looked for on which node, and what passes on with a place. */

const seats: readonly Patch[] = [
  [
    'seat: a vacant place is held by who left it',
    "const holds = place.state === 'held' && place.sessionId === actor.sessionId",
    'const holds = place.sessionId === actor.sessionId',
  ],
  [
    'seat: a held place is held by everybody',
    "const holds = place.state === 'held' && place.sessionId === actor.sessionId",
    "const holds = place.state === 'held'",
  ],
  [
    'seat: the holder takes its place again',
    'if (holds && place.settled && place.node === actor.node) return unchanged(call)',
    '',
  ],
  [
    'seat: the holder never settles',
    'if (holds && place.settled && place.node === actor.node)',
    'if (holds && place.node === actor.node)',
  ],
  [
    'seat: whoever finds a settled place stays out',
    'if (holds && place.settled && place.node === actor.node)',
    'if (place.settled && place.node === actor.node)',
  ],
  [
    'seat: the holder is believed to be where it was',
    'if (holds && place.settled && place.node === actor.node)',
    'if (holds && place.settled)',
  ],
  [
    'seat: the holder takes its place again where it is, and not where it comes',
    'if (holds && place.settled && place.node === actor.node)',
    'if (holds && place.settled && place.node !== actor.node)',
  ],
  ['seat: to settle is to take', "holds ? 'place_settled' : 'place_taken'", "'place_taken'"],
  [
    'seat: the place is not settled',
    'const next = withPlace(call, side, placeFor(actor, true))',
    'const next = withPlace(call, side, placeFor(actor, false))',
  ],
  ['place for: the node of before stays', 'node: actor.node, settled }', "node: '', settled }"],
]

const heldCheck = "if (place.state === 'held' && (!isOwn || place.node === actor.node)) return unchanged(call)"
const settledBy = 'placeFor(actor, isNamed || (isOwn && place.settled))'

const arrivals: readonly Patch[] = [
  ['arrive: the callee has a place while it rings', 'if (place === null) return unchanged(call)', ''],
  ['arrive: a held place is taken', heldCheck, ''],
  ['arrive: a held place is not taken along', heldCheck, "if (place.state === 'held') return unchanged(call)"],
  [
    'arrive: the holder takes its place again',
    heldCheck,
    "if (place.state === 'held' && !isOwn) return unchanged(call)",
  ],
  [
    'arrive: whoever comes to another node takes a held place',
    heldCheck,
    "if (place.state === 'held' && place.node === actor.node) return unchanged(call)",
  ],
  [
    'arrive: the holder takes its place again where it is, and not where it comes',
    heldCheck,
    "if (place.state === 'held' && (!isOwn || place.node !== actor.node)) return unchanged(call)",
  ],
  [
    'arrive: nobody but its holder takes a vacant place',
    heldCheck,
    'if (!isOwn || place.node === actor.node) return unchanged(call)',
  ],
  ['arrive: any device takes the place', 'if (!isOwn && place.deviceId !== actor.deviceId) return unchanged(call)', ''],
  ['arrive: other devices take the place', 'place.deviceId !== actor.deviceId', 'place.deviceId === actor.deviceId'],
  [
    'arrive: a session without a device takes none',
    'place.deviceId !== actor.deviceId',
    'place.deviceId !== actor.deviceId || actor.deviceId === null',
  ],
  [
    'arrive: a place without a device is for everybody',
    'place.deviceId !== actor.deviceId',
    '(place.deviceId !== null && place.deviceId !== actor.deviceId)',
  ],
  [
    'arrive: the session itself is on its device, or it has nothing',
    'if (!isOwn && place.deviceId',
    'if (place.deviceId',
  ],
  ['arrive: other sessions need no device', 'if (!isOwn && place.deviceId', 'if (isOwn && place.deviceId'],
  ['arrive: who is named needs no device', 'if (!isOwn && place.deviceId', 'if (!isOwn && !isNamed && place.deviceId'],
  [
    'arrive: everybody is the session itself',
    'const isOwn = place.sessionId === actor.sessionId',
    'const isOwn = true',
  ],
  ['arrive: nobody is the session itself', 'const isOwn = place.sessionId === actor.sessionId', 'const isOwn = false'],
  ['arrive: everybody is named', 'const isNamed = place.sessionId === resumes', 'const isNamed = true'],
  [
    'arrive: whoever names anybody is named',
    'const isNamed = place.sessionId === resumes',
    'const isNamed = resumes !== undefined',
  ],
  ['arrive: nobody is named', 'const isNamed = place.sessionId === resumes', 'const isNamed = false'],
  ['arrive: who connects settles the place', settledBy, 'placeFor(actor, true)'],
  ['arrive: nobody settles the place', settledBy, 'placeFor(actor, false)'],
  ['arrive: who comes back settles what it had not settled', settledBy, 'placeFor(actor, isNamed || isOwn)'],
  ['arrive: who comes back has to speak again', settledBy, 'placeFor(actor, isNamed)'],
  ['arrive: a place that was settled stays so for everybody', settledBy, 'placeFor(actor, isNamed || place.settled)'],
  ['arrive: who is named has to speak again', settledBy, 'placeFor(actor, isOwn && place.settled)'],
  [
    'arrive: who is named finds what its session had',
    settledBy,
    'placeFor(actor, (isNamed || isOwn) && place.settled)',
  ],
]

const isLost = "place.state === 'held' && place.sessionId === sessionId && place.node === node"
const isHeld = "place.state === 'held' && nodes.includes(place.node)"
const emptied = "(isHeld(place) ? place : { ...place, state: 'vacant', since: now })"

const losses: readonly Patch[] = [
  ['lose: a clock begins again', isLost, 'place.sessionId === sessionId && place.node === node'],
  ['lose: any session empties every place of its node', isLost, "place.state === 'held' && place.node === node"],
  ['lose: whoever sees it is believed', isLost, "place.state === 'held' && place.sessionId === sessionId"],
  [
    'lose: only others are believed',
    isLost,
    "place.state === 'held' && place.sessionId === sessionId && place.node !== node",
  ],
  [
    'lose: what is lost stays',
    "isLost(place) ? { ...place, state: 'vacant'",
    "!isLost(place) ? { ...place, state: 'vacant'",
  ],
  ['lose: nothing lost is news', 'if (vacated === call) return unchanged(call)', ''],
  [
    'lose: the clock began at the start',
    "isLost(place) ? { ...place, state: 'vacant', since: now, ...how }",
    "isLost(place) ? { ...place, state: 'vacant', since: call.startedAt, ...how }",
  ],
  ['lose: nobody closed', 'closed === true ? ({ since: at ?? now, closed } as const) : {}', '{}'],
  [
    'lose: everybody closed',
    'closed === true ? ({ since: at ?? now, closed } as const) : {}',
    '({ since: at ?? now, closed: true } as const)',
  ],
  ['again: whatever the call is', "call.status !== 'accepted' || !isClosed", '!isClosed'],
  [
    'again: however it was lost',
    '!isClosed(place) || place.sessionId === actor',
    "place.state !== 'vacant' || place.sessionId === actor",
  ],
  ['again: to whoever comes back as the same', '|| place.sessionId === actor.sessionId) return []', ') return []'],
  ['again: the caller hears it twice', "if (side === 'callee' && isClosed(callerPlace)) return []", ''],
  [
    'again: the caller hears it never',
    "if (side === 'callee' && isClosed(callerPlace)) return []",
    'if (isClosed(callerPlace)) return []',
  ],
  [
    'again: the caller has yet to hear it',
    "if (callerPlace.state === 'vacant' && callerPlace.since < acceptedAt) return []",
    '',
  ],
  ['lose: who left is forgotten', 'isLost(place) ? { ...place, state', "isLost(place) ? { ...place, node: '', state"],
  ['restart: held places stay held', isHeld, "place.state === 'held'"],
  ['restart: held places are lost wherever they are', isHeld, 'false'],
  ['restart: lost clocks run on where it was lost', isHeld, 'nodes.includes(place.node)'],
  [
    'restart: who is on a node that serves is lost, and nobody else',
    isHeld,
    "place.state === 'held' && !nodes.includes(place.node)",
  ],
  ['restart: one node that serves holds everybody', isHeld, "place.state === 'held' && nodes.length > 0"],
  [
    'restart: lost clocks run on',
    emptied,
    "(isHeld(place) || place.state === 'vacant' ? place : { ...place, state: 'vacant', since: now })",
  ],
  [
    'restart: the clock began at the start',
    emptied,
    "(isHeld(place) ? place : { ...place, state: 'vacant', since: call.startedAt })",
  ],
  ['restart: nothing lost is news', `${emptied})\n  if (next === call) return unchanged(call)`, `${emptied})`],
]

const moving =
  'if (was !== null && was.sessionId !== placeOf(after, side)?.sessionId) moves.push({ side, from: was.sessionId })'

const moves: readonly Patch[] = [
  [
    'moved: never said',
    'return noteMoves(call, decideForActor(call, command, now))',
    'return decideForActor(call, command, now)',
  ],
  [
    'moved: said where nothing did',
    'if (!decision.steps.some((step) => movesOf(before, step.call).length > 0)) return decision',
    '',
  ],
  [
    'moved: said where nothing did, and not where something did',
    'if (!decision.steps.some(',
    'if (decision.steps.some(',
  ],
  ['moved: nothing is named', 'moved: movesOf(before, call) }', 'moved: [] }'],
  [
    'moved: the caller alone',
    "const side of ['caller', 'callee'] as const) {\n    const was",
    "const side of ['caller'] as const) {\n    const was",
  ],
  [
    'moved: the callee alone',
    "const side of ['caller', 'callee'] as const) {\n    const was",
    "const side of ['callee'] as const) {\n    const was",
  ],
  ['moved: the other side', moving, moving.replace('{ side, from', '{ side: otherSide(side), from')],
  [
    'moved: what begins passes on',
    moving,
    'if (was?.sessionId !== placeOf(after, side)?.sessionId) moves.push({ side, from: was?.sessionId ?? "" })',
  ],
  ['moved: every place', moving, 'if (was !== null) moves.push({ side, from: was.sessionId })'],
  [
    'moved: what stays passes on',
    moving,
    'if (was !== null && was.sessionId === placeOf(after, side)?.sessionId) moves.push({ side, from: was.sessionId })',
  ],
  [
    'moved: from whoever takes it',
    moving,
    moving.replace('from: was.sessionId', 'from: placeOf(after, side)!.sessionId'),
  ],
  ['moved: not from who never spoke', moving, moving.replace('was !== null', 'was !== null && was.settled')],
  ['moved: not from who is there', moving, moving.replace('was !== null', "was !== null && was.state === 'vacant'")],
  [
    'moved: not to who has yet to speak',
    moving,
    moving.replace('was !== null', 'was !== null && placeOf(after, side)?.settled'),
  ],
  ['moved: not at the end', moving, moving.replace('was !== null', 'was !== null && isLive(after)')],
  [
    'moved: to another node',
    moving,
    moving.replaceAll('sessionId', 'node').replace('from: was.node', 'from: was.sessionId'),
  ],
]

export const nodeFaults: readonly Patch[] = [...seats, ...arrivals, ...losses, ...moves]
