import { afterEach, expect, test } from 'bun:test'
import { soon, until } from '@ringwire/testkit/patience'
import { earlyMs } from '../support/clocks.ts'
import { about, answeredCall, connectedCall, ringingCall } from '../support/extended-flows.ts'
import { hangUp, historyOf, pairOn, stopAll } from './people.ts'
import { becomesReady, becomesUnready, toldOf, worldFor } from './world.ts'

/** What takes long in an outage of minutes, so short that a test can wait for it. To come back takes less. */
const lostMs = 6_000
const ringMs = 7_000
/** A timer may be late on a busy machine, in ms. */
const lateMs = 2_000

const world = worldFor({
  env: { RINGWIRE_PEER_LOST_MS: String(lostMs), RINGWIRE_CALLER_LOST_MS: String(lostMs) },
})

function signal(name: 'SIGSTOP' | 'SIGCONT'): void {
  process.kill(world().redis.pid, name)
}
// A test that fails leaves Redis as the next one needs it.
afterEach(() => signal('SIGCONT'))

// biome-ignore lint/suspicious/noExplicitAny: tests compare what came.
async function stored(callUuid: string): Promise<any> {
  const { postgres, databaseUrl } = world()
  const [row] = await postgres.query(
    `SELECT status, caller_place, callee_place FROM calls WHERE call_uuid = '${callUuid}'`,
    databaseUrl,
  )
  return row
}

const isVacant = (place: unknown) => JSON.stringify(place).includes('vacant')

test('[EXT3] [END1] what ended at the begin of an outage of minutes is told when Redis is back, once', async () => {
  const { one, two, postgres, databaseUrl } = world()
  const [hangingUp, declining, cancelling] = await Promise.all([pairOn(one, two), pairOn(two, one), pairOn(one, two)])
  const [over, declined, cancelled] = await Promise.all([
    answeredCall(hangingUp),
    ringingCall(declining),
    ringingCall(cancelling),
  ])
  signal('SIGSTOP')
  await becomesUnready('redis', one, two)
  const ends = [
    [hangingUp.caller, 'call.end', over],
    [declining.callee, 'call.reject', declined],
    [cancelling.caller, 'call.cancel', cancelled],
  ] as const
  for (const [client, event, call_uuid] of ends) {
    expect((await client.request(event, { call_uuid })).event).toBe('call.ack')
  }
  // As if it were ten minutes later: nothing else of these calls goes by the time.
  const uuids = ends.map(([, , call]) => `'${call}'`).join()
  const aged = await postgres.query(
    `UPDATE calls SET ended_at = ended_at - 600000 WHERE call_uuid IN (${uuids}) RETURNING 1`,
    databaseUrl,
  )
  expect(aged).toHaveLength(3)
  signal('SIGCONT')
  await becomesReady(one, two)
  const told = [
    [hangingUp.callee, 'call.ended', over],
    [declining.caller, 'call.rejected', declined],
    [cancelling.callee, 'call.cancelled', cancelled],
  ] as const
  await Promise.all(told.map(([client, event, call]) => client.next(event, about(call))))
  for (const [client, event, call] of told) expect([event, toldOf(client, event, call)]).toEqual([event, 1])
  stopAll(hangingUp, declining, cancelling)
}, 240_000)

test('[END3] [RING1] while Redis is away lost clocks stand still and rings do not; back, they start in full', async () => {
  const { one, two } = world()
  const [unanswered, lost, back, hidden] = await Promise.all([
    pairOn(one, two),
    pairOn(one, two),
    pairOn(two, one),
    pairOn(two, one),
  ])
  const [gone, kept, rung, missed] = await Promise.all([
    answeredCall(lost),
    connectedCall(back),
    ringingCall(hidden),
    ringingCall(unanswered, { ring_timeout_ms: ringMs }),
  ])
  signal('SIGSTOP')
  await becomesUnready('redis', one, two)
  await Promise.all([lost.callee.die(), back.callee.die(), hidden.caller.die()])
  await until('the places are vacant', async () => {
    const rows = await Promise.all([gone, kept, rung].map(stored))
    return isVacant(rows[0].callee_place) && isVacant(rows[1].callee_place) && isVacant(rows[2].caller_place)
  })
  const vacantAt = performance.now()
  await until('the ring has run out', async () => (await stored(missed)).status === 'missed')
  // Who is lost would be given up by now.
  await until('the lost clocks would have run out', () => performance.now() - vacantAt > lostMs + lateMs / 2)
  const statuses = await Promise.all([gone, kept, rung].map(async (call) => (await stored(call)).status))
  expect(statuses).toEqual(['accepted', 'connected', 'ringing'])

  const since = performance.now()
  signal('SIGCONT')
  await becomesReady(one, two)
  expect((await back.callee.connect()).data).toMatchObject({ recovered: true })
  await Promise.all([unanswered.caller, unanswered.callee].map((client) => client.next('call.missed', about(missed))))
  await Promise.all([lost.caller.next('call.ended', about(gone)), hidden.callee.next('call.cancelled', about(rung))])
  expect(performance.now() - since).toBeWithin(lostMs - earlyMs, lostMs + soon(lateMs))
  expect(await historyOf(one, lost, gone)).toMatchObject({ status: 'ended', end_reason: 'peer_lost' })
  expect(await historyOf(two, hidden, rung)).toMatchObject({ end_reason: 'caller_lost' })
  expect(toldOf(back.caller, 'call.ended', kept)).toBe(0)
  await hangUp(two, back, kept)
  stopAll(unanswered, lost, back, hidden)
}, 240_000)
