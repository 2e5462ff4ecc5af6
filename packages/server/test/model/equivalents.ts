/** Mutations that change nothing that anybody can see, and why. */
export const equivalents: Readonly<Record<string, string>> = {
  "call.ts isClosed: only the right: place.state === 'vacant' && place.closed === true":
    'only a vacant place has it; the types ask',
  "call.ts isAwaited: only the right: place.state === 'vacant' && place.awaitedMs !== undefined":
    'only a vacant place has it; the types ask',
  "places.ts maySpeak: only the right: place.state === 'vacant' && now >= place.since + ownDeviceMs":
    'a held place has no instant; the types ask',
  'decide.ts decideSeated: only the right: isEntering && command.isGone === true':
    'only those commands have it; the types ask',
  'places.ts noteMoves: every instead: decision.steps.some': 'what is decided about one call has one step at most',
  "places.ts withPlace: never: call.status === 'ringing'": 'the callee of a ringing call has no place; the types ask',
  'call.ts linkOf: never: !isLive(call)': 'a call that is over is not being transferred any more',
  'call.ts linkOf: never: callUuid === undefined': 'a link without a uuid finds no call',
  'call.ts linkOf: left out: product: call.product': 'the live calls of an invite are of one product',
  'linked.ts decideLinked: only the right: call === undefined || linked === undefined':
    'a call that is not there has no other one; the types ask',
  'transfer.ts checkOwn: only the right: call === undefined || side === undefined':
    'nobody is in a call that is not there; the types ask',
  'invite.ts decideInvite: only the right: !isLive(sameUuid) && now - sameUuid.endedAt > repeatMs':
    'a live call has no end to be older than; the types ask',
  "effects.ts missedData: only the left: call.caller.displayName ?? ''": 'a caller has a name; the types ask',
  "effects.ts missedData: another word: ''": 'a caller has a name; the types ask',
  "effects.ts ringingData: only the left: call.caller.displayName ?? ''": 'a caller has a name; the types ask',
  "effects.ts ringingData: another word: ''": 'a caller has a name; the types ask',
  'group.ts refuseOutsider: only the left: !isMember(call, participant) || group === undefined':
    "a call to nobody's group has no members; the types ask",
  "leave.ts leaveGroup: only the left: call.status !== 'ringing' || call.group === undefined":
    'it is asked of calls to groups; the types ask',
  "decide.ts decideForActor: only the left: own ?? 'callee'":
    'only the caller is looked for by its side; the types ask',
  'effects.ts ringingData: one more: 0': 'a new call has all of its time before it',
}

const groupTest = 'call/call.test.ts [GROUP1]'
const goneTest = 'call/places.test.ts [PLACE2] what a client sent before its socket closed'

/**
 * Mutations that tables and worlds do not reach, and the test that finds each. There both sides close at one instant, nobody is
 * erased, and no socket closes before what came on it is done.
 */
export const foundElsewhere: Readonly<Record<string, string>> = {
  'call.ts placeOf: never: isErased(call[side])': 'call/call.test.ts [SRV2]',
  "peers.ts newsOf: only the left: was.ends_at === is.ends_at || has?.state !== 'held'":
    'call/peers.test.ts [PEER1] [END5]',
  "effects.ts calleeIdOf: only the left: call.group !== undefined && (call.status === 'ringing' || call.acceptedAt === nu":
    groupTest,
  "call.ts ringsAt: never: call.status !== 'ringing'": groupTest,
  'call.ts ringsAt: never: call.group === undefined': groupTest,
  "call.ts ringsAt: !==: sideOf(call, participant) === 'callee'": groupTest,
  'call.ts ringsAt: only the right: isMember(call, participant) && !declined.includes(participant.userId)': groupTest,
  'decide.ts decideSeated: false: true': goneTest,
  'decide.ts decideSeated: only the left: !maySpeak(place, actor, now) || (isGone && place.deviceId !== actor.deviceId)':
    goneTest,
  'decide.ts decideSeated: only the left: isGone && place.deviceId !== actor.deviceId': goneTest,
  'decide.ts decideSeated: ===: place.deviceId !== actor.deviceId': goneTest,
  'decide.ts decideSeated: one more: 0': goneTest,
  'decide.ts decideSeated: never: isGone': goneTest,
  'decide.ts decideSeated: never: isGone (2)': goneTest,
  'decide.ts decideSeated: never: isGone (3)': goneTest,
}
