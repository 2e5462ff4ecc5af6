import { expect, test } from 'bun:test'
import { soon } from '@ringwire/testkit/patience'
import { about, answeredCall, ringingCall } from '../support/extended-flows.ts'
import { pairOn, stopAll } from './people.ts'
import { jumpTo, makeSkewed } from './skewed-database.ts'
import { worldFor } from './world.ts'

const ringMs = 4_000
const lostMs = 4_000
/** A timer may be late on a busy machine; of a clock that jumps, what a look takes is not known, in ms. */
const lateMs = 1_500
const earlyMs = 300

const world = worldFor({ env: { RINGWIRE_PEER_LOST_MS: String(lostMs) }, makeDatabase: makeSkewed })

test('[RING1] [END3] the clock that all nodes go by jumps back and forth: rings and lost clocks move along once, not once per node', async () => {
  const { one, two, postgres, databaseUrl } = world()
  for (const ms of [-30_000, 0]) {
    const [unanswered, losing] = await Promise.all([pairOn(one, two), pairOn(two, one)])
    const lost = await answeredCall(losing)
    // Each began at some moment between two that are known here.
    const diesAt = performance.now()
    await losing.callee.die()
    const diedAt = performance.now()
    const ring = await ringingCall(unanswered, { ring_timeout_ms: ringMs })
    const rungAt = performance.now()
    await jumpTo(postgres, databaseUrl, ms)
    const [missedAt, endedAt] = await Promise.all([
      unanswered.caller.next('call.missed', about(ring)).then(() => performance.now()),
      losing.caller.next('call.ended', about(lost)).then(() => performance.now()),
    ])
    expect(missedAt).toBeWithin(diedAt + ringMs - earlyMs, rungAt + ringMs + soon(lateMs))
    expect(endedAt).toBeWithin(diesAt + lostMs - earlyMs, diedAt + lostMs + soon(lateMs))
    stopAll(unanswered, losing)
  }
}, 240_000)
