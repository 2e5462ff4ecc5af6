import { expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import { soon } from '@ringwire/testkit/patience'
import type { Service } from '@ringwire/testkit/service'
import { earlyMs } from '../support/clocks.ts'
import { answeredCall, connectExtended, connectedCall, ringingCall } from '../support/extended-flows.ts'
import { hangUp, historyOf, pairOn, stopAll } from './people.ts'
import { toldOf, worldFor } from './world.ts'

/** One node is five minutes behind, the other five minutes ahead; the database is right. */
const offMs = 300_000
/** Longer than it takes to answer, and to come back. */
const ringMs = 4_000
const lostMs = 4_000
const tokenTtlS = 120
/** A timer may be late on a busy machine, in ms. */
const lateMs = 1_000

const preload = new URL('./clock-off.ts', import.meta.url).pathname
const world = worldFor({
  env: {
    BUN_OPTIONS: `--preload=${preload}`,
    RINGWIRE_RING_TIMEOUT_MS: String(ringMs),
    RINGWIRE_PEER_LOST_MS: String(lostMs),
    RINGWIRE_CALLER_LOST_MS: String(lostMs),
    RINGWIRE_TOKEN_TTL_S: String(tokenTtlS),
  },
  envOf: (node) => ({ RINGWIRE_TEST_CLOCK_OFF_MS: String(node === 'one' ? -offMs : offMs) }),
})

const aboutCall =
  (callUuid: string) =>
  ({ data }: { data: { call_uuid?: string } }) =>
    data?.call_uuid === callUuid

/** By the node's own clock. */
function startedAt({ log }: Service): number {
  return Date.parse(/"time":"([^"]+)"/.exec(log)?.[1] ?? '')
}

const ways = () => {
  const { one, two } = world()
  return [
    [one, two],
    [two, one],
  ] as const
}

test('the clocks of both nodes are really off', () => {
  const { one, two } = world()
  expect(startedAt(two) - startedAt(one)).toBeGreaterThan(2 * offMs - 60_000)
  expect(startedAt(one)).toBeLessThan(Date.now() - offMs + 60_000)
})

test('[TOK2] [TOK3] tokens of either node are good on the other, and last as long as they say', async () => {
  for (const [issuer, other] of ways()) {
    const wish = { user_id: someone('caller'), role: 'customer' }
    const { token, expires_at } = await issuer.issue(wish)
    expect(Math.abs(Date.parse(expires_at) - Date.now() - tokenTtlS * 1_000)).toBeLessThan(soon(2_000))
    for (const node of [issuer, other]) {
      expect(await node.history(token)).toMatchObject({ success: true })
    }
    const client = await connectExtended(other, wish)
    expect(Math.abs(Date.parse(client.hello?.data.server_time) - Date.now())).toBeLessThan(soon(2_000))
    client.stop()
  }
})

test('[RING1] [RING2] a ring ends at its time, whichever node has it', async () => {
  await Promise.all(
    ways().map(async ([callerAt, calleeAt]) => {
      const pair = await pairOn(callerAt, calleeAt)
      const since = Date.now()
      const callUuid = await ringingCall(pair)
      const ringing = pair.callee.all.find(({ event }) => event === 'call.ringing')
      expect(ringing?.data.ring_timeout_ms).toBeWithin(ringMs - soon(1_000), ringMs + 1)
      const expiresAt = Date.parse(ringing?.data.expires_at)
      expect(Math.abs(expiresAt - since - ringMs)).toBeLessThan(soon(lateMs))
      await Promise.all([pair.caller, pair.callee].map((client) => client.next('call.missed', aboutCall(callUuid))))
      expect(Date.now() - expiresAt).toBeWithin(-earlyMs, soon(lateMs))
      const record = await historyOf(calleeAt, pair, callUuid)
      expect(Math.abs(Date.parse(record.started_at) - since)).toBeLessThan(soon(lateMs))
      expect(Math.abs(Date.parse(record.ended_at) - expiresAt)).toBeLessThan(soon(lateMs))
      stopAll(pair)
    }),
  )
})

test('[END3] a lost place waits as long as it should, and its holder may come back to the other node', async () => {
  await Promise.all(
    ways().map(async ([callerAt, calleeAt]) => {
      const [lost, back] = await Promise.all([pairOn(callerAt, calleeAt), pairOn(callerAt, calleeAt)])
      const [gone, kept] = await Promise.all([answeredCall(lost), connectedCall(back)])
      await back.callee.die()
      // Its node sees it somewhen between the two.
      const from = Date.now()
      await lost.callee.die()
      const since = Date.now()
      back.callee.url = callerAt.url
      expect((await back.callee.connect()).data).toMatchObject({ recovered: true })
      await lost.caller.next('call.ended', aboutCall(gone))
      expect(Date.now()).toBeWithin(from + lostMs - earlyMs, since + lostMs + soon(lateMs))
      expect(await historyOf(callerAt, lost, gone)).toMatchObject({ end_reason: 'peer_lost' })
      expect(toldOf(back.caller, 'call.ended', kept)).toBe(0)
      await hangUp(calleeAt, back, kept)
      stopAll(lost, back)
    }),
  )
})
