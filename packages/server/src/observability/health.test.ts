import { expect, test } from 'bun:test'
import { createHealth, type ServiceState } from './health.ts'

const fine = async () => {}
const broken = async () => {
  throw new Error('away')
}

test('[HEALTH1] liveness is always ok; service_ready is false only while starting or draining', () => {
  for (const [state, ready] of [
    ['starting', false],
    ['ready', true],
    ['draining', false],
  ] as const) {
    const health = createHealth({ checks: { database: broken, redis: broken }, state: () => state })
    expect(health.live()).toEqual({
      status: 200,
      body: { ok: true, database: 'unchecked', redis: 'unchecked', service_ready: ready },
    })
  }
})

test('[HEALTH1] readiness: everything answers', async () => {
  const health = createHealth({ checks: { database: fine, redis: fine }, state: () => 'ready' })
  expect(await health.ready()).toEqual({
    status: 200,
    body: { ok: true, database: 'ok', redis: 'ok', service_ready: true },
  })
})

test('[HEALTH1] readiness: the failing one says error, the others what they are', async () => {
  const throwsAtOnce = () => {
    throw new Error('a bug')
  }
  for (const database of [broken, throwsAtOnce]) {
    const health = createHealth({ checks: { database, redis: fine }, state: () => 'ready' })
    expect(await health.ready()).toEqual({
      status: 503,
      body: { ok: false, database: 'error', redis: 'ok', service_ready: false },
    })
  }
})

test('[HEALTH1] readiness: starting and draining are not ready, whatever the stores say', async () => {
  let state: ServiceState = 'starting'
  const health = createHealth({ checks: { database: fine, redis: fine }, state: () => state })
  const notReady = { status: 503, body: { ok: false, database: 'ok', redis: 'ok', service_ready: false } } as const
  expect(await health.ready()).toEqual(notReady)
  state = 'ready'
  expect((await health.ready()).status).toBe(200)
  state = 'draining'
  // The state is never cached.
  expect(await health.ready()).toEqual(notReady)
})

test('[HEALTH1] a check that does not answer in time is an error', async () => {
  const hangs = () => new Promise<void>(() => {})
  const health = createHealth({ checks: { database: hangs, redis: fine }, state: () => 'ready', timeoutMs: 30 })
  expect(await health.ready()).toMatchObject({ status: 503, body: { database: 'error', redis: 'ok' } })
})

test('[HEALTH1] a check that hangs is not begun a second time until it is over', async () => {
  let now = 0
  let asked = 0
  let answer = Promise.withResolvers<void>()
  const database = () => {
    asked++
    return answer.promise
  }
  const monotonic = () => now
  const checks = { database, redis: fine }
  const health = createHealth({ checks, state: () => 'ready', timeoutMs: 5, monotonic })
  for (; now < 10_000; now += 2_000) expect(await health.ready()).toMatchObject({ status: 503 })
  expect(asked).toBe(1)
  answer.resolve()
  await Bun.sleep(0)
  answer = Promise.withResolvers()
  answer.resolve()
  expect((await health.ready()).status).toBe(200)
  expect(asked).toBe(2)
})

test('[HEALTH1] results are good for a second, and many probes ask once', async () => {
  let now = 0
  let asked = 0
  let answer = Promise.withResolvers<void>()
  const database = () => {
    asked++
    return answer.promise
  }
  const health = createHealth({ checks: { database, redis: fine }, state: () => 'ready', monotonic: () => now })
  const probes = Array.from({ length: 50 }, () => health.ready())
  expect(asked).toBe(1)
  now = 900
  answer.resolve()
  expect((await Promise.all(probes)).every(({ status }) => status === 200)).toBe(true)
  now = 1899
  await health.ready()
  expect(asked).toBe(1)
  now = 1900
  answer = Promise.withResolvers<void>()
  answer.reject(new Error('away'))
  expect((await health.ready()).status).toBe(503)
  expect(asked).toBe(2)
})
