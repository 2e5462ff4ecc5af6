import { afterEach, expect, test } from 'bun:test'
import { about, connectedCall } from '../support/extended-flows.ts'
import { hangUp, historyOf, pairOn, stopAll } from './people.ts'
import { becomesReady, becomesUnready, toldOf, worldFor } from './world.ts'

/**
 * A client that comes back has a session before its calls can be read: both have to be there, or neither. Connects that
 * end with 1013 do not count: all of them together are more than may be [WS7].
 */
const world = worldFor({ env: { RINGWIRE_PEER_LOST_MS: '5000', RINGWIRE_CONNECT_RATE: '3/600' } })

// A test that fails leaves the database as the next one needs it.
afterEach(() => world().postgres.freeze('SIGCONT'))

test('[RES2] [END3] [WS7] who was turned away as the database stood still, and stays away, is given up', async () => {
  const { one, two, postgres } = world()
  const [staying, coming] = await Promise.all([pairOn(one, two), pairOn(two, one)])
  const [lost, kept] = await Promise.all([connectedCall(staying), connectedCall(coming)])
  postgres.freeze('SIGSTOP')
  const closed = await Promise.all(
    [staying.callee, coming.callee].map(async (client) => {
      await client.die()
      client.supersede()
      const first = await client.closed
      client.supersede()
      return [first.code, (await client.closed).code]
    }),
  )
  expect(closed.flat()).toEqual([1013, 1013, 1013, 1013])
  await becomesUnready('database', one, two)
  const back = coming.callee.comeBack()
  postgres.freeze('SIGCONT')
  await becomesReady(one, two)
  // The client that comes in the end is the same one.
  expect((await back).data).toMatchObject({ recovered: true, active_calls: [{ holds_place: true }] })
  await staying.caller.next('call.ended', about(lost))
  expect(await historyOf(one, staying, lost)).toMatchObject({ status: 'ended', end_reason: 'peer_lost' })
  expect(toldOf(coming.caller, 'call.ended', kept)).toBe(0)
  await hangUp(one, coming, kept)
  stopAll(staying, coming)
}, 240_000)
