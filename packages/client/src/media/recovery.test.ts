import { expect, test } from 'bun:test'
import { createRecovery } from './recovery.ts'

/** A clock that the test moves. */
function createClock() {
  let now = 0
  let timers: { at: number; run: () => void }[] = []
  return {
    after(ms: number, run: () => void): () => void {
      const timer = { at: now + ms, run }
      timers.push(timer)
      return () => {
        timers = timers.filter((it) => it !== timer)
      }
    },
    pass(ms: number): void {
      const end = now + ms
      for (;;) {
        const next = timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0]
        if (!next) break
        now = next.at
        timers = timers.filter((it) => it !== next)
        next.run()
      }
      now = end
    },
    now: () => now,
  }
}

function setUp({ polite = false } = {}) {
  const clock = createClock()
  const restarts: { at: number; fresh: boolean }[] = []
  const service = { online: true }
  const recovery = createRecovery({
    restartAfterMs: 2500,
    connectTimeoutMs: 6000,
    after: clock.after,
    isOnline: () => service.online,
    isPolite: () => polite,
    restart: ({ fresh }) => restarts.push({ at: clock.now(), fresh }),
  })
  return { clock, restarts, service, recovery }
}

test('a connected path that brings nothing though the peer sends gets two new connections, and more once something came', () => {
  const { restarts, recovery } = setUp()
  recovery.begin()
  recovery.follow('connected')
  const look = (times: number, arrived: boolean, isDue = true) => {
    for (let i = 0; i < times; i++) recovery.looked(arrived, isDue)
  }
  // A peer that sends nothing is not a reason.
  look(60, false, false)
  look(5, false)
  look(1, true)
  look(5, false)
  expect(restarts).toEqual([])
  for (let tries = 0; tries < 4; tries++) {
    look(6, false)
    recovery.opened()
    look(20, false)
    recovery.follow('connected')
  }
  expect(restarts.map(({ fresh }) => fresh)).toEqual([true, true])
  look(1, true)
  look(6, false)
  expect(restarts).toHaveLength(3)
})

test('before the call is answered nothing is tried, and a connection that comes in time is left alone', () => {
  const { clock, restarts, recovery } = setUp()
  recovery.opened()
  recovery.follow('failed')
  clock.pass(60_000)
  recovery.begin()
  clock.pass(5000)
  recovery.follow('connected')
  clock.pass(60_000)
  expect(restarts).toEqual([])
})

test('a connection that does not come is tried with new credentials, then with new connections, ever more rarely', () => {
  const { clock, restarts, recovery } = setUp()
  recovery.begin()
  clock.pass(60_000)
  expect(restarts).toEqual([
    { at: 6000, fresh: false },
    { at: 9000, fresh: true },
    { at: 15_000, fresh: true },
    { at: 27_000, fresh: true },
    { at: 42_000, fresh: true },
    { at: 57_000, fresh: true },
  ])
  recovery.stop()
  clock.pass(60_000)
  expect(restarts).toHaveLength(6)
})

test('a failed path is tried at once, an interrupted one after a while unless it comes back', () => {
  const { clock, restarts, recovery } = setUp()
  recovery.begin()
  recovery.follow('connected')
  recovery.follow('disconnected')
  clock.pass(2000)
  recovery.follow('connected')
  clock.pass(10_000)
  expect(restarts).toEqual([])
  recovery.follow('disconnected')
  clock.pass(2500)
  expect(restarts).toEqual([{ at: 14_500, fresh: false }])
  recovery.follow('connected')
  recovery.follow('failed')
  clock.pass(0)
  expect(restarts).toHaveLength(2)
})

test('the polite side gives the other one a second', () => {
  const { clock, restarts, recovery } = setUp({ polite: true })
  recovery.begin()
  recovery.follow('connected')
  recovery.follow('disconnected')
  clock.pass(3499)
  expect(restarts).toEqual([])
  clock.pass(1)
  expect(restarts).toHaveLength(1)
})

test('while the service is away nothing is tried; when it is back, at once', () => {
  const { clock, restarts, service, recovery } = setUp()
  recovery.begin()
  recovery.follow('connected')
  service.online = false
  recovery.follow('disconnected')
  clock.pass(60_000)
  expect(restarts).toEqual([])
  service.online = true
  recovery.online()
  expect(restarts).toEqual([{ at: 60_000, fresh: false }])
})

test('a connection that works is left alone when the service is back, unless signals were lost', () => {
  const { clock, restarts, recovery } = setUp()
  recovery.begin()
  recovery.follow('connected')
  recovery.online()
  clock.pass(60_000)
  expect(restarts).toEqual([])
  recovery.resync()
  // New credentials on a path that works change its state by nothing, and are requested once.
  clock.pass(60_000)
  expect(restarts).toEqual([{ at: 60_000, fresh: false }])
})

test('a connection that calls itself connected and brings nothing is tried when the service is back', () => {
  const { clock, restarts, recovery } = setUp()
  recovery.begin()
  recovery.follow('connected')
  recovery.looked(false, false)
  recovery.online()
  clock.pass(500)
  // Since the look before, and that was before the network changed.
  recovery.looked(true, false)
  expect(restarts).toEqual([])
  recovery.looked(false, false)
  expect(restarts).toEqual([{ at: 500, fresh: false }])
  recovery.looked(false, false)
  recovery.follow('connected')
  recovery.online()
  for (let i = 0; i < 2; i++) recovery.looked(true, false)
  recovery.looked(false, false)
  clock.pass(60_000)
  expect(restarts).toHaveLength(1)
})

test('a new connection of the peer has its own time', () => {
  const { clock, restarts, recovery } = setUp()
  recovery.begin()
  recovery.follow('connected')
  clock.pass(1000)
  recovery.opened()
  clock.pass(5999)
  expect(restarts).toEqual([])
  clock.pass(1)
  expect(restarts).toEqual([{ at: 7000, fresh: false }])
})
