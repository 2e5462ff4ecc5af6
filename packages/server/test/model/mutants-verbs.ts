import type { Patch } from './mutants.ts'

/** Faults of call/decide.ts, of who is heard with which verb: a guard gone or turned round, an outcome exchanged. */

const noPlace = "refuse('CALL_NOT_PARTICIPANT')"

const dispatch: readonly Patch[] = [
  ['a missing call is not looked for', "if (call === undefined) return refuse('CALL_NOT_FOUND')", ''],
  [
    'lose: a call that is over',
    'isLive(call) ? lose(call, command, now) : unchanged(call)',
    'lose(call, command, now)',
  ],
  [
    'time: a call that is over',
    'isLive(call) ? passTime(call, now, durations) : unchanged(call)',
    'passTime(call, now, durations)',
  ],
  [
    'restart: a call that is over',
    'isLive(call) ? restart(call, command.nodes, now) : unchanged(call)',
    'restart(call, command.nodes, now)',
  ],
  ['restart: nobody serves', 'restart(call, command.nodes, now)', 'restart(call, [], now)'],
  [
    'shift: a call that is over',
    'isLive(call) ? shift(call, command.ms, now) : unchanged(call)',
    'shift(call, command.ms, now)',
  ],
  ['lose is taken for time', "command.type === 'lose'", "command.type === 'time'"],
  ['time is taken for lose', "command.type === 'time'", "command.type === 'lose'"],
  [
    'strangers are heard as callers',
    "if (side === undefined) return refuse('CALL_NOT_FOUND')",
    "if (side === undefined) return decideSeated(call, 'caller', call.callerPlace, command, now)",
  ],
  [
    'strangers learn that the call exists',
    "if (side === undefined) return refuse('CALL_NOT_FOUND')",
    `if (side === undefined) return ${noPlace}`,
  ],
  [
    'arrive: a call that is over',
    'isLive(call) ? arrive(call, side, command, now) : unchanged(call)',
    'arrive(call, side, command, now)',
  ],
  ['arrive does nothing', 'isLive(call) ? arrive(call, side, command, now) : unchanged(call)', 'unchanged(call)'],
  ['a call that is over is heard as a live one', 'if (!isLive(call)) return decideOver(call, side, command, now)', ''],
  [
    'the caller of a ringing call is heard as its callee',
    "if (side === 'caller') return decideSeated(call, side, call.callerPlace, command, now)",
    '',
  ],
  [
    'the callee of a ringing call needs a place',
    "if (call.status === 'ringing') return decideRingingCallee(call, command, now)",
    '',
  ],
  [
    'an answered call still rings at the callee',
    "if (call.status === 'ringing') return decideRingingCallee",
    "if (call.status !== 'connected') return decideRingingCallee",
  ],
]

const overCalls: readonly Patch[] = [
  ['over: the caller accepts', `if (side === 'caller') return ${noPlace}\n      return`, 'return'],
  [
    'over: everybody who accepts is on the wrong side',
    `if (side === 'caller') return ${noPlace}\n      return`,
    `if (side !== 'caller') return ${noPlace}\n      return`,
  ],
  [
    'over: an accept succeeds',
    "refuse('CALL_INVALID_STATE', { status: call.status })\n    case 'relay':\n      if (now",
    "unchanged(call)\n    case 'relay':\n      if (now",
  ],
  ['over: late relays always fail', 'if (now - call.endedAt < lateRelayMs) return unchanged(call)', ''],
  ['over: late relays never fail', 'now - call.endedAt < lateRelayMs', 'true'],
  ['over: late relays fail a moment later', 'now - call.endedAt < lateRelayMs', 'now - call.endedAt <= lateRelayMs'],
  [
    'over: hanging up fails',
    'default:\n      return unchanged(call)',
    "default:\n      return refuse('CALL_INVALID_STATE', { status: call.status })",
  ],
]

const ringing: readonly Patch[] = [
  [
    'ringing: accept rejects',
    'return accept(call, command.actor, now)',
    "return reject(call, command.actor, 'declined', now)",
  ],
  [
    'ringing: busy is a plain reject',
    "if (command.reason === 'busy') return silence(call, command.actor, command.rung, now)",
    '',
  ],
  ['ringing: every reject is a busy one', "if (command.reason === 'busy') return silence", 'return silence'],
  [
    'ringing: the reason of a reject is dropped',
    "now)\n      return reject(call, command.actor, command.reason ?? 'declined', now)",
    "now)\n      return reject(call, command.actor, 'declined', now)",
  ],
  [
    'ringing: the reason of an end is dropped',
    "case 'end':\n      return reject(call, command.actor, command.reason ?? 'declined', now)",
    "case 'end':\n      return reject(call, command.actor, 'declined', now)",
  ],
  [
    'ringing: the end of a callee is refused',
    "case 'end':\n      return reject(call, command.actor, command.reason ?? 'declined', now)",
    `case 'end':\n      return ${noPlace}`,
  ],
  [
    'ringing: the callee cancels',
    `case 'cancel':\n      return ${noPlace}`,
    "case 'cancel':\n      return reject(call, command.actor, 'declined', now)",
  ],
  [
    'ringing: connected succeeds',
    "case 'connected':\n      return refuse('CALL_INVALID_STATE', { status: call.status })",
    "case 'connected':\n      return unchanged(call)",
  ],
  [
    'ringing: a relay of the callee is refused',
    "case 'relay':\n      return unchanged(call)",
    `case 'relay':\n      return ${noPlace}`,
  ],
]

const seated: readonly Patch[] = [
  [
    'seated: the caller accepts',
    "(command.type === 'accept' || command.type === 'reject')",
    "(command.type === 'reject')",
  ],
  [
    'seated: the caller rejects',
    "(command.type === 'accept' || command.type === 'reject')",
    "(command.type === 'accept')",
  ],
  ['seated: the callee may not accept again or reject', "side === 'caller' && (command.type", '(command.type'],
  ['seated: the callee cancels', `if (side === 'callee' && command.type === 'cancel') return ${noPlace}`, ''],
  ['seated: nobody cancels', "side === 'callee' && command.type === 'cancel'", "command.type === 'cancel'"],
  ['seated: everybody may speak', 'if (!maySpeak(place, actor)) {', 'if (false) {'],
  ['seated: only who may not speak is heard', 'if (!maySpeak(place, actor)) {', 'if (maySpeak(place, actor)) {'],
  [
    'seated: accept comes too late without saying so',
    "command.type === 'accept' ? 'CALL_ALREADY_ANSWERED' : 'CALL_NOT_PARTICIPANT'",
    "'CALL_NOT_PARTICIPANT'",
  ],
  [
    'seated: everything comes too late',
    "command.type === 'accept' ? 'CALL_ALREADY_ANSWERED' : 'CALL_NOT_PARTICIPANT'",
    "'CALL_ALREADY_ANSWERED'",
  ],
  [
    'seated: the place is asked for before the side',
    "  if (side === 'caller' && (command.type === 'accept' || command.type === 'reject'))",
    "  if (!maySpeak(place, actor)) return refuse(command.type === 'accept' ? 'CALL_ALREADY_ANSWERED' : 'CALL_NOT_PARTICIPANT')\n  if (side === 'caller' && (command.type === 'accept' || command.type === 'reject'))",
  ],
  [
    'seated: who speaks settles nothing',
    'const seated = withPlace(call, side, placeFor(actor, true))',
    'const seated = withPlace(call, side, placeFor(actor, false))',
  ],
  [
    'seated: who speaks does not get the place',
    'const seated = withPlace(call, side, placeFor(actor, true))',
    'const seated = call',
  ],
  [
    'seated: a relay or accept takes no place',
    "return seat(call, side, place, actor, now)\n    case 'connected':",
    "return unchanged(call)\n    case 'connected':",
  ],
  [
    'seated: a ringing call connects',
    "if (seated.status === 'ringing') return refuse('CALL_INVALID_STATE', { status: seated.status })",
    '',
  ],
  [
    'seated: connected twice is news',
    "if (seated.status === 'connected') return seat(call, side, place, actor, now)",
    '',
  ],
  [
    'seated: connected twice takes no place',
    "if (seated.status === 'connected') return seat(call, side, place, actor, now)",
    "if (seated.status === 'connected') return unchanged(call)",
  ],
  ['connected: nobody is told', 'notices: [connectedNotice(call, side, actor)]', 'notices: []'],
  ['connected: who said it is told', '{ to: { place: otherSide(side) }, event', '{ to: { place: side }, event'],
  [
    'connected: the caller alone is told',
    '{ to: { place: otherSide(side) }, event',
    "{ to: { place: 'caller' }, event",
  ],
  [
    'connected: the callee alone is told',
    '{ to: { place: otherSide(side) }, event',
    "{ to: { place: 'callee' }, event",
  ],
  [
    'connected: it is told of another call',
    "call_uuid: call.callUuid, status: 'connected'",
    "call_uuid: '', status: 'connected'",
  ],
  ['connected: the status before is told', "status: 'connected', by: { user_id", 'status: call.status, by: { user_id'],
  [
    'connected: the callee did it always',
    'const { userId, role } = actor.participant\n  const data',
    'const { userId, role } = call.callee\n  const data',
  ],
  ['seated: nothing connects', "if (seated.status === 'connected') return seat", 'return seat'],
  [
    'seated: cancel of a ringing call tells its author',
    "case 'cancel':\n      if (seated.status === 'ringing') return",
    "case 'cancel':\n      if (false) return",
  ],
  [
    'seated: cancel of an accepted call ends it',
    "if (seated.status === 'accepted') return over(seated, 'cancelled', 'caller_cancelled', byOf(actor), now, null)",
    '',
  ],
  ['seated: cancel always cancels', "if (seated.status === 'accepted') return over", 'return over'],
  [
    'seated: cancel that crossed the accept does not tell its author',
    "if (seated.status === 'accepted') return over(seated, 'cancelled', 'caller_cancelled', byOf(actor), now, null)",
    "if (seated.status === 'accepted') return over(seated, 'cancelled', 'caller_cancelled', byOf(actor), now)",
  ],
  [
    'seated: a late cancel drops its reason',
    "return over(seated, 'ended', command.reason ?? 'hangup', byOf(actor), now, null)\n    case 'reject':",
    "return over(seated, 'ended', 'hangup', byOf(actor), now, null)\n    case 'reject':",
  ],
  [
    'seated: a late cancel does not tell its author',
    "return over(seated, 'ended', command.reason ?? 'hangup', byOf(actor), now, null)\n    case 'reject':",
    "return over(seated, 'ended', command.reason ?? 'hangup', byOf(actor), now)\n    case 'reject':",
  ],
  [
    'seated: a late reject drops its reason',
    "case 'reject':\n      return over(seated, 'ended', command.reason ?? 'hangup', byOf(actor), now, null)",
    "case 'reject':\n      return over(seated, 'ended', 'hangup', byOf(actor), now, null)",
  ],
  [
    'seated: a late reject does not tell its author',
    "case 'reject':\n      return over(seated, 'ended', command.reason ?? 'hangup', byOf(actor), now, null)",
    "case 'reject':\n      return over(seated, 'ended', command.reason ?? 'hangup', byOf(actor), now)",
  ],
  [
    'seated: a late reject is refused',
    "case 'reject':\n      return over(seated, 'ended', command.reason ?? 'hangup', byOf(actor), now, null)",
    `case 'reject':\n      return ${noPlace}`,
  ],
  [
    'seated: the end of a ringing call does not cancel',
    "case 'end':\n      if (seated.status === 'ringing') return",
    "case 'end':\n      if (false) return",
  ],
  [
    'seated: every end cancels',
    "case 'end':\n      if (seated.status === 'ringing') return over",
    "case 'end':\n      return over",
  ],
  [
    'seated: an end drops its reason',
    "now)\n      return over(seated, 'ended', command.reason ?? 'hangup', byOf(actor), now)\n  }",
    "now)\n      return over(seated, 'ended', 'hangup', byOf(actor), now)\n  }",
  ],
]

export const verbFaults: readonly Patch[] = [...dispatch, ...overCalls, ...ringing, ...seated]
