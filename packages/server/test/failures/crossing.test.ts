import { expect, test } from 'bun:test'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import type { ExtendedMessage } from '@ringwire/testkit/extended-trace'
import { isLong } from '@ringwire/testkit/long'
import { inviteOf } from '../support/sessions.ts'
import { pairOn, stopAll } from './people.ts'
import { toldOf, worldFor } from './world.ts'

/** So few that no command waits longer than the service lets it, on a busy machine either. */
const pairs = 25
const rounds = isLong ? 40 : 10

const world = worldFor()

test(`[INV6] ${pairs * rounds} pairs of crossing invites over two nodes: one call each, and both sides know of it`, async () => {
  const { one, two, postgres, databaseUrl } = world()
  const people = await Promise.all(
    Array.from({ length: pairs }, (_, i) => (i % 2 === 0 ? pairOn(one, two) : pairOn(two, one))),
  )
  let glares = 0
  for (let round = 0; round < rounds; round++) {
    await Promise.all(
      people.map(async ({ caller, callee, callerId, calleeId }) => {
        const [first, second] = await Promise.all([
          caller.request('call.invite', inviteOf(calleeId)),
          callee.request('call.invite', { callee_user_id: callerId, callee_role: 'customer' }),
        ])
        await isOneCall([caller, first], [callee, second])
        glares++
      }),
    )
  }
  expect(glares).toBe(pairs * rounds)
  const [counted] = await postgres.query(
    'SELECT count(*)::int AS calls, count(DISTINCT call_uuid)::int AS uuids FROM calls',
    databaseUrl,
  )
  expect(counted).toEqual({ calls: pairs * rounds, uuids: pairs * rounds })
  stopAll(...people)
}, 240_000)

type Asked = readonly [client: ExtendedClient, reply: ExtendedMessage]

/** One of the two won; the other was told which call waits, which rang at it, and takes it. */
async function isOneCall(...both: readonly [Asked, Asked]): Promise<void> {
  const [winner] = both.filter(([, reply]) => reply.event === 'call.invited')
  const [loser] = both.filter(([, reply]) => reply.error?.code === 'CALL_GLARE')
  if (winner === undefined || loser === undefined) throw new Error(JSON.stringify(both.map(([, reply]) => reply)))
  const { call_uuid } = winner[1].data
  expect(loser[1].error.call_uuid).toBe(call_uuid)
  expect(toldOf(loser[0], 'call.ringing', call_uuid)).toBe(1)
  await loser[0].request('call.accept', { call_uuid })
  await winner[0].next('call.accepted', ({ data }) => data.call_uuid === call_uuid)
  await winner[0].request('call.end', { call_uuid })
  await loser[0].next('call.ended', ({ data }) => data.call_uuid === call_uuid)
}
