import { expect, test } from 'bun:test'
import type { Participant } from '../call/call.ts'
import { newSessionId, participantHash } from '../ports/session-id.ts'
import type { SignalingSession } from './dispatch.ts'
import { closeRevoked } from './revoking.ts'

function crowd(size: number) {
  const looked: string[] = []
  const closed: string[] = []
  const participants = Array.from({ length: size }, (_, n) => ({
    product: 'shop',
    role: 'agent',
    userId: `agent-${n}`,
  }))
  const connections = participants.map((participant) => ({
    session: { participant, sessionId: newSessionId(participant) } as unknown as SignalingSession,
    close: () => void closed.push(participant.userId),
  }))
  const isRevokedOf = (away: readonly Participant[]) => (session: SignalingSession) => {
    looked.push(session.participant.userId)
    return away.some(({ userId }) => userId === session.participant.userId)
  }
  return { looked, closed, participants, connections, isRevokedOf }
}

test('[SRV2] who sends one participant away has hardly any other socket looked at', () => {
  const { looked, closed, participants, connections, isRevokedOf } = crowd(5_000)
  const away = [participants[17] as Participant, participants[4_711] as Participant]
  closeRevoked(connections, isRevokedOf(away), away.map(participantHash))
  expect(closed).toEqual(['agent-17', 'agent-4711'])
  // Of 5,000 participants one in 26 passes has another of the same 18 bits.
  expect(looked.length).toBeLessThan(10)
})

test('[KEY1] where it is not known whose sockets they are, all are looked at', () => {
  const { looked, closed, participants, connections, isRevokedOf } = crowd(100)
  closeRevoked(connections, isRevokedOf(participants.slice(0, 2)))
  expect([closed, looked.length]).toEqual([['agent-0', 'agent-1'], 100])
})
