import type { CallSteps } from '../ports/call-store.ts'
import type { CallDurations, Participant } from './call.ts'
import type { Actor, CallCommand } from './command.ts'
import { decide } from './decide.ts'
import { decideInvite, type InviteCommand } from './invite.ts'

export const durations: CallDurations = { callerLostMs: 20_000, peerLostMs: 120_000, maxDurationMs: 43_200_000 }

export function actorOf(participant: Participant): Actor {
  return {
    participant,
    sessionId: crypto.randomUUID().replaceAll('-', ''),
    deviceId: null,
    node: 'node-1',
    displayName: `Name of ${participant.userId}`,
  }
}

export function inviteCommand(caller: Actor, callee: Participant, callUuid: string): InviteCommand {
  return {
    actor: caller,
    callee: { userId: callee.userId, role: callee.role },
    callUuid,
    freshUuid: crypto.randomUUID(),
    contextType: 'appointment',
    contextId: '4711',
    callType: 'audio',
    ringTimeoutMs: 45_000,
    metadata: null,
    rate: { ok: true },
    maxRinging: 5,
    busy: 'allow',
  }
}

/** A whole call as the service drives it: five transitions, from the invite to the end. */
export function callLife(): ((store: CallSteps) => unknown)[] {
  const id = crypto.randomUUID()
  const caller = actorOf({ product: 'clinic', role: 'patient', userId: `patient-${id.slice(0, 8)}` })
  const callee = actorOf({ product: 'clinic', role: 'doctor', userId: `doctor-${id.slice(9, 18)}` })
  const send = (command: CallCommand) => (store: CallSteps) =>
    store.transition({ product: 'clinic', callUuid: id }, (call) => decide(call, command, Date.now(), durations))
  return [
    (store) =>
      store.invite(caller.participant, callee.participant, id, (situation) =>
        decideInvite(situation, inviteCommand(caller, callee.participant, id), Date.now()),
      ),
    send({ type: 'accept', actor: callee }),
    send({ type: 'connected', actor: callee }),
    send({ type: 'lose', sessionId: caller.sessionId, node: caller.node }),
    send({ type: 'end', actor: callee, reason: null }),
  ]
}
