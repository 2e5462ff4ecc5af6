import type { Patch } from './mutants.ts'

/** Faults of call/invite.ts: checks gone, turned round or in another order, comparisons weakened. */

const rights: readonly Patch[] = [
  [
    'rights: the action is not asked for',
    "if (!rights.allowedActions.includes('call.invite')) return refuse('ACTION_NOT_ALLOWED')",
    '',
  ],
  [
    'rights: the action is turned round',
    "!rights.allowedActions.includes('call.invite')",
    "rights.allowedActions.includes('call.invite')",
  ],
  [
    'rights: the role is not asked for',
    "if (!rights.allowedPeerRoles.includes(callee.role)) return refuse('CALL_PEER_ROLE_NOT_ALLOWED')",
    '',
  ],
  [
    'rights: self is called',
    "if (callee.userId === caller.userId && callee.role === caller.role) return refuse('CALL_TO_SELF')",
    '',
  ],
  [
    'rights: another role is self',
    'callee.userId === caller.userId && callee.role === caller.role',
    'callee.userId === caller.userId',
  ],
  [
    'rights: another user is self',
    'callee.userId === caller.userId && callee.role === caller.role',
    'callee.role === caller.role',
  ],
  ['rights: null is no type', 'callType != null && (typeof', 'callType !== undefined && (typeof'],
  ['rights: a type that is no text', "typeof callType !== 'string' || ", ''],
  [
    'rights: any text is a type',
    "(typeof callType !== 'string' || !callTypePattern.test(callType))",
    "typeof callType !== 'string'",
  ],
  ['rights: no type is a type', "(typeof callType !== 'string' || !callTypePattern.test(callType))", 'true'],
  [
    'rights: the role comes before the action',
    "  if (!rights.allowedActions.includes('call.invite')) return refuse('ACTION_NOT_ALLOWED')\n  if (!rights.allowedPeerRoles.includes(callee.role)) return refuse('CALL_PEER_ROLE_NOT_ALLOWED')\n",
    "  if (!rights.allowedPeerRoles.includes(callee.role)) return refuse('CALL_PEER_ROLE_NOT_ALLOWED')\n  if (!rights.allowedActions.includes('call.invite')) return refuse('ACTION_NOT_ALLOWED')\n",
  ],
  [
    'rights: self comes before the role',
    "  if (!rights.allowedPeerRoles.includes(callee.role)) return refuse('CALL_PEER_ROLE_NOT_ALLOWED')\n  if (callee.userId === caller.userId && callee.role === caller.role) return refuse('CALL_TO_SELF')\n",
    "  if (callee.userId === caller.userId && callee.role === caller.role) return refuse('CALL_TO_SELF')\n  if (!rights.allowedPeerRoles.includes(callee.role)) return refuse('CALL_PEER_ROLE_NOT_ALLOWED')\n",
  ],
  [
    'rights: the type comes first',
    "  if (!rights.allowedActions.includes('call.invite'))",
    "  if (callType != null && !callTypePattern.test(String(callType))) return refuse('CALL_TYPE_INVALID', { field: 'call_type' })\n  if (!rights.allowedActions.includes('call.invite'))",
  ],
]

const named: readonly Patch[] = [
  ['uuid: not looked at', 'if (sameUuid !== undefined) {', 'if (false && sameUuid !== undefined) {'],
  [
    'uuid: who was called repeats',
    "if (sideOf(sameUuid, caller) === 'caller') {",
    'if (sideOf(sameUuid, caller) !== undefined) {',
  ],
  ['uuid: strangers repeat', "if (sideOf(sameUuid, caller) === 'caller') {", 'if (true) {'],
  ['uuid: nobody repeats', "if (sideOf(sameUuid, caller) === 'caller') {", 'if (false) {'],
  [
    'uuid: another callee is no conflict',
    "if (sideOf(sameUuid, callee) !== 'callee') return refuse('CALL_ID_CONFLICT')",
    '',
  ],
  [
    'uuid: the same callee is a conflict',
    "sideOf(sameUuid, callee) !== 'callee'",
    "sideOf(sameUuid, callee) === 'callee'",
  ],
  ['uuid: a foreign one is used', 'callUuid = command.freshUuid', ''],
  [
    'repeat: a call that is over is taken',
    'isLive(call) && maySpeak(call.callerPlace, actor)',
    'maySpeak(call.callerPlace, actor)',
  ],
  ['repeat: a held place is taken', 'isLive(call) && maySpeak(call.callerPlace, actor)', 'isLive(call)'],
  ['repeat: an answered call is not taken', 'isLive(call) && maySpeak', "call.status === 'ringing' && maySpeak"],
  [
    'repeat: nothing is taken',
    "speaks ? seat(call, 'caller', call.callerPlace, actor, now) : unchanged(call)",
    'unchanged(call)',
  ],
  ['repeat: what it takes along is not said', '...noteMoves(call, seated)', '...seated'],
]

const waiting: readonly Patch[] = [
  [
    'waiting: any call of the caller',
    'sideOf(call, caller) !== undefined && sideOf(call, callee) !== undefined,',
    'sideOf(call, caller) !== undefined,',
  ],
  [
    'waiting: any call of the callee',
    'sideOf(call, caller) !== undefined && sideOf(call, callee) !== undefined,',
    'sideOf(call, callee) !== undefined,',
  ],
  [
    'waiting: an answered call waits',
    "between.find((call) => call.status === 'ringing' && sideOf(call, caller) === 'caller')",
    "between.find((call) => sideOf(call, caller) === 'caller')",
  ],
  [
    'waiting: a crossing call waits',
    "between.find((call) => call.status === 'ringing' && sideOf(call, caller) === 'caller')",
    "between.find((call) => call.status === 'ringing')",
  ],
  ['waiting: nothing waits', 'if (waiting !== undefined && isSame', 'if (false && waiting !== undefined && isSame'],
  ['waiting: whatever it is for', 'waiting !== undefined && isSameWish(waiting, command)', 'waiting !== undefined'],
  ['waiting: another context type is the same', 'call.contextType === contextType && ', ''],
  ['waiting: another context is the same', 'call.contextId === contextId && ', ''],
  ['waiting: another call type is the same', ' && call.callType === callType', ''],
  [
    'waiting: what is held by me rings again',
    "if (place.state === 'vacant' || place.sessionId === actor.sessionId) return repeat",
    "if (place.state === 'vacant') return repeat",
  ],
  [
    'waiting: what is left rings again',
    "if (place.state === 'vacant' || place.sessionId === actor.sessionId) return repeat",
    'if (place.sessionId === actor.sessionId) return repeat',
  ],
  [
    'waiting: what another session holds is repeated',
    "if (place.state === 'vacant' || place.sessionId === actor.sessionId) return repeat",
    'return repeat',
  ],
]

const stale: readonly Patch[] = [
  ['stale: the side of the inviter is not looked at', "sideOf(call, actor.participant) === 'caller'", 'true'],
  [
    'stale: the sides are exchanged',
    "sideOf(call, actor.participant) === 'caller'",
    "sideOf(call, actor.participant) !== 'caller'",
  ],
  [
    'stale: what rings elsewhere stays',
    "if (inviterIsCaller) return over(call, 'cancelled', 'superseded', byOf(actor), now, null).steps",
    '',
  ],
  [
    'stale: its author does not hear of it',
    "if (inviterIsCaller) return over(call, 'cancelled', 'superseded', byOf(actor), now, null).steps",
    "if (inviterIsCaller) return over(call, 'cancelled', 'superseded', byOf(actor), now).steps",
  ],
  [
    'stale: what rings elsewhere was lost',
    "if (inviterIsCaller) return over(call, 'cancelled', 'superseded', byOf(actor), now, null).steps",
    "if (inviterIsCaller) return over(call, 'cancelled', 'caller_lost', null, now).steps",
  ],
  [
    'stale: a left crossing call stays',
    "return call.callerPlace.state === 'vacant' ? over(call, 'cancelled', 'caller_lost', null, now).steps : []",
    'return []',
  ],
  [
    'stale: every crossing call ends',
    "return call.callerPlace.state === 'vacant' ? over(call, 'cancelled', 'caller_lost', null, now).steps : []",
    "return over(call, 'cancelled', 'caller_lost', null, now).steps",
  ],
  ['stale: an answered call is ringing', "if (call.status === 'ringing') {", 'if (call.status) {'],
  [
    'stale: the peer is looked at',
    'inviterIsCaller ? call.callerPlace : call.calleePlace',
    'inviterIsCaller ? call.calleePlace : call.callerPlace',
  ],
  [
    'stale: a left answered call stays',
    "return isStale ? over(call, 'ended', 'superseded', byOf(actor), now).steps : []",
    'return []',
  ],
  [
    'stale: every answered call ends',
    "return isStale ? over(call, 'ended', 'superseded', byOf(actor), now).steps : []",
    "return over(call, 'ended', 'superseded', byOf(actor), now).steps",
  ],
  [
    'stale: who came back is still in the call',
    "inviterPlace.state === 'vacant' || isLeft",
    "inviterPlace.state === 'vacant'",
  ],
  ['stale: who is in the call has left it', '!inviterPlace.settled && inviterPlace', 'inviterPlace'],
  [
    'stale: whoever came back has left it',
    '!inviterPlace.settled && inviterPlace.sessionId === actor.sessionId',
    '!inviterPlace.settled',
  ],
]

const rateCheck = '  if (!command.rate.ok) return limited(command.rate.limit, command.rate.retryAfterMs)\n'
const glareCheck = "  if (crossing !== undefined) return refuse('CALL_GLARE', { call_uuid: crossing.callUuid })\n"

const limits: readonly Patch[] = [
  [
    'limits: what ends still counts',
    'situation.live.filter((call) => !steps.some((step) => step.call.callUuid === call.callUuid))',
    'situation.live',
  ],
  ['limits: only what ends counts', '!steps.some((step)', 'steps.some((step)'],
  [
    'limits: any end is the end of all',
    '!steps.some((step) => step.call.callUuid === call.callUuid)',
    'steps.length === 0',
  ],
  ['limits: no rate', rateCheck, ''],
  ['limits: the rate is turned round', 'if (!command.rate.ok) return', 'if (command.rate.ok) return'],
  [
    'limits: answered calls count as ringing',
    "call is RingingCall => call.status === 'ringing' && sideOf(call, caller) === 'caller'",
    "call is RingingCall => sideOf(call, caller) === 'caller'",
  ],
  [
    'limits: being called counts',
    "call is RingingCall => call.status === 'ringing' && sideOf(call, caller) === 'caller'",
    "call is RingingCall => call.status === 'ringing' && sideOf(call, caller) !== undefined",
  ],
  [
    'limits: calls of others count',
    "call is RingingCall => call.status === 'ringing' && sideOf(call, caller) === 'caller'",
    "call is RingingCall => call.status === 'ringing'",
  ],
  ['limits: one call too many', 'ringing.length >= command.maxRinging', 'ringing.length > command.maxRinging'],
  ['limits: no number', 'if (ringing.length >= command.maxRinging) {', 'if (false) {'],
  ['limits: the last call frees', 'Math.min(...ringing', 'Math.max(...ringing'],
  ['limits: the past is waited for', 'Math.max(0, freeAt - now)', 'freeAt - now'],
  ['limits: a repeat counts', '  const waiting = between.find(', `${rateCheck}  const waiting = between.find(`],
  [
    'limits: the same uuid counts',
    '  let callUuid = command.callUuid\n',
    `${rateCheck}  let callUuid = command.callUuid\n`,
  ],
  [
    'limits: glare comes before the rate',
    rateCheck,
    `  const early = others.find((call) => call.status === 'ringing' && sideOf(call, caller) === 'callee' && sideOf(call, callee) === 'caller')\n  if (early !== undefined) return refuse('CALL_GLARE', { call_uuid: early.callUuid })\n${rateCheck}`,
  ],
  [
    'limits: busy comes before the rate',
    rateCheck,
    `  if (calleeBusy && command.busy === 'reject') return refuse('CALLEE_BUSY', {}, [busyStep(command, callUuid, now)])\n${rateCheck}`,
  ],
]

const glareAndBusy: readonly Patch[] = [
  [
    'glare: an answered call crosses',
    "call.status === 'ringing' && sideOf(call, caller) === 'callee' && sideOf(call, callee) === 'caller'",
    "sideOf(call, caller) === 'callee' && sideOf(call, callee) === 'caller'",
  ],
  [
    'glare: whatever the callee rings crosses',
    "sideOf(call, caller) === 'callee' && sideOf(call, callee) === 'caller'",
    "sideOf(call, callee) === 'caller'",
  ],
  [
    'glare: whoever rings here crosses',
    "sideOf(call, caller) === 'callee' && sideOf(call, callee) === 'caller'",
    "sideOf(call, caller) === 'callee'",
  ],
  ['glare: nothing crosses', glareCheck, ''],
  [
    'glare: busy comes before it',
    glareCheck,
    `  if (calleeBusy && command.busy === 'reject') return refuse('CALLEE_BUSY', {}, [busyStep(command, callUuid, now)])\n${glareCheck}`,
  ],
  ['busy: never refused', "if (calleeBusy && command.busy === 'reject') {", 'if (false) {'],
  ['busy: refused where it is allowed', "calleeBusy && command.busy === 'reject'", 'calleeBusy'],
  ['busy: refused though free', "calleeBusy && command.busy === 'reject'", "command.busy === 'reject'"],
  ['busy: no record', '[busyStep(command, callUuid, now)]', '[]'],
  [
    'busy: what it would supersede ends',
    '[busyStep(command, callUuid, now)]',
    '[...steps, busyStep(command, callUuid, now)]',
  ],
  ['busy: nobody is', 'situation.live.some((call) => keepsBusy(call, callee, caller))', 'false'],
  ['busy: all must be', 'situation.live.some(', 'situation.live.every('],
  ['busy: by a call with the same peer', 'if (sideOf(call, caller) !== undefined) return false', ''],
  [
    'busy: not in an answered call',
    "isAnswered(call) || sideOf(call, callee) === 'caller'",
    "sideOf(call, callee) === 'caller'",
  ],
  ['busy: not while calling', "isAnswered(call) || sideOf(call, callee) === 'caller'", 'isAnswered(call)'],
  ['busy: while being called', "isAnswered(call) || sideOf(call, callee) === 'caller'", 'true'],
  ['ring: what it supersedes goes on', 'steps: [...steps, created]', 'steps: [created]'],
  ['ring: the new call comes first', 'steps: [...steps, created]', 'steps: [created, ...steps]'],
  [
    'ring: nobody hears it',
    "const notices = [{ to: { place: 'rung', except: [] }, event: 'call.ringing', data: ringingData(call, now) }] as const",
    'const notices = [] as const',
  ],
  ['ring: the place is not settled', 'callerPlace: placeFor(actor, true),', 'callerPlace: placeFor(actor, false),'],
]

export const inviteFaults: readonly Patch[] = [...rights, ...named, ...waiting, ...stale, ...limits, ...glareAndBusy]
