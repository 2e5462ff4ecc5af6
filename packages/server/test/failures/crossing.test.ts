import { expect, test } from 'bun:test'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import type { ExtendedMessage } from '@ringwire/testkit/extended-trace'
import { isLong } from '@ringwire/testkit/long'
import { until } from '@ringwire/testkit/patience'
import { inviteOf } from '../support/sessions.ts'
import { pairOn, stopAll } from './people.ts'
import { toldOf, worldFor } from './world.ts'

/** So few that no command waits longer than the service lets it, on a busy machine either. */
const pairs = 25
const rounds = isLong ? 15 : 5

const world = worldFor()

test(`[INV6] ${pairs * rounds} pairs of crossing invites over two nodes: one call each, and both sides know of it`, async () => {
  const { one, two, postgres, databaseUrl } = world()
  const people = await Promise.all(
    Array.from({ length: pairs }, (_, i) => (i % 2 === 0 ? pairOn(one, two) : pairOn(two, one))),
  )
  let calls = 0
  for (let round = 0; round < rounds; round++) {
    const made = await Promise.all(
      people.map(async ({ caller, callee, callerId, calleeId }) => {
        const [first, second] = await Promise.all([
          caller.request('call.invite', inviteOf(calleeId)),
          callee.request('call.invite', { callee_user_id: callerId, callee_role: 'customer' }),
        ])
        return isOneCall([caller, first], [callee, second])
      }),
    )
    calls += made.reduce((sum, count) => sum + count, 0)
  }
  const [counted] = await postgres.query(
    'SELECT count(*)::int AS calls, count(DISTINCT call_uuid)::int AS uuids FROM calls',
    databaseUrl,
  )
  expect(counted).toEqual({ calls, uuids: calls })
  stopAll(...people)
}, 240_000)

type Asked = readonly [client: ExtendedClient, reply: ExtendedMessage]

/**
 * One of the two won; the other heard which call waits, which rang at it, and takes it. If the whole machine stood still
 * for 5 s, a node may count as dead when the second invite comes: the first call then is one that its caller has lost.
 * Answers how many calls there were.
 */
async function isOneCall(...both: readonly [Asked, Asked]): Promise<number> {
  const invited = both.filter(([, reply]) => reply.event === 'call.invited')
  const refused = both.filter(([, reply]) => reply.error?.code === 'CALL_GLARE')
  if (invited.length === 0 || invited.length + refused.length < 2)
    throw new Error(JSON.stringify(both.map(([, reply]) => reply)))
  const lost = invited.length === 2 ? await lostOf(invited) : undefined
  const winner = invited.find((asked) => asked !== lost)!
  const [loser] = lost ?? refused[0]!
  const { call_uuid } = winner[1].data
  if (lost === undefined) expect(refused[0]![1].error.call_uuid).toBe(call_uuid)
  await until('the call rings', () => toldOf(loser, 'call.ringing', call_uuid) > 0)
  expect(toldOf(loser, 'call.ringing', call_uuid)).toBe(1)
  await loser.request('call.accept', { call_uuid })
  await winner[0].next('call.accepted', ({ data }) => data.call_uuid === call_uuid)
  await winner[0].request('call.end', { call_uuid })
  await loser.next('call.ended', ({ data }) => data.call_uuid === call_uuid)
  return invited.length
}

/** Of two calls the one that was over before the other began: any other end would be a fault. */
async function lostOf(invited: readonly Asked[]): Promise<Asked> {
  const isLost = ([client, { data: call }]: Asked) =>
    client.all.some(
      ({ event, data }) =>
        event === 'call.cancelled' && data.call_uuid === call.call_uuid && data.reason === 'caller_lost',
    )
  await until('one of two calls was lost', () => invited.some(isLost))
  expect(invited.filter(isLost)).toHaveLength(1)
  return invited.find(isLost)!
}
