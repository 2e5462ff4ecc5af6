import type { Call } from '../../src/call/call.ts'
import type { Notice, Step } from '../../src/call/effects.ts'
import { violated } from './machine.ts'
import { type Cause, checkStep } from './rules.ts'
import { type Draft, final, loggedSession, personOf, rung, type Setup, silent, tell } from './world.ts'

export function cause(draft: Draft, kind: Cause['kind'], client: number | undefined): Cause {
  return {
    kind,
    client: client === undefined ? undefined : draft.clients[client],
    lost: undefined,
    verb: undefined,
    callType: undefined,
    serving: undefined,
    names: undefined,
    now: draft.now,
  }
}

/** Stores the steps and delivers their notices. */
export function commit(setup: Setup, draft: Draft, steps: readonly Step[], cause: Cause) {
  for (const step of steps) {
    const { call } = step
    let index = draft.calls.findIndex((tracked) => tracked.call.callUuid === call.callUuid)
    checkStep(setup, index === -1 ? undefined : draft.calls[index], step, cause)
    if (index === -1) {
      const told = draft.clients.map(() => 0)
      const caller = personOf(setup, call.caller, call.product)
      index = draft.calls.push({ call, caller, callee: personOf(setup, call.callee, call.product), told }) - 1
    } else draft.calls[index] = { ...draft.calls[index]!, call }
    for (const notice of step.event.notices) deliver(draft, index, notice)
    if (call.status !== 'ringing') nobodyRings(draft, index)
  }
}

function deliver(draft: Draft, index: number, notice: Notice) {
  const tracked = draft.calls[index]!
  const over = 'ended_at' in notice.data && notice.data.ended_at !== null
  if (notice.to.place !== 'rung') {
    const place = notice.to.place === 'caller' ? tracked.call.callerPlace : placeOfCallee(tracked.call)
    const client = draft.clients.findIndex((each) => loggedSession(each) === place.sessionId)
    if (client === -1) return
    if (tracked.told[client]! & final) violated('ORD2', `${notice.event} after the final notice`)
    if (over) tell(draft, index, client, final)
    return
  }
  for (const [at, client] of draft.clients.entries()) {
    const sessionId = loggedSession(client)
    if (client.person !== tracked.callee || sessionId === undefined) continue
    const told = tracked.told[at]!
    const gone = client.actor === undefined
    if (notice.event === 'call.ringing') {
      if (told !== 0) violated('ORD2', 'call.ringing is not the first that a session hears')
      if (!gone) tell(draft, index, at, rung)
    } else if (!notice.to.except.includes(sessionId)) {
      if (gone && (told & rung) === 0) continue
      if ((told & rung) === 0) violated('PLACE1', `${notice.event} to a session that was not rung`)
      if (told & silent) violated('END2', `${notice.event} to a session that knew it`)
      tell(draft, index, at, over ? silent | final : silent)
    }
  }
}

function placeOfCallee(call: Call) {
  const place = call.status === 'ringing' ? null : call.calleePlace
  return place ?? violated('PLACE1', 'a notice to the place of a callee that has none')
}

/** A session that was rung knows that it is over, or ended it; an absent one finds it in its log. */
function nobodyRings(draft: Draft, index: number) {
  for (const told of draft.calls[index]!.told) {
    if (told & rung && !(told & silent)) violated('PLACE1', 'a session is left ringing')
  }
}
