import { afterEach, expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { arrive, beSilent, type Newcomer, type Silent, SmallService, tokensFor } from './crowd.ts'

const files = 150
const crowd = 220
const refused = ['HTTP 503 SERVICE_UNAVAILABLE', '1013 SERVICE_UNAVAILABLE']

let service: SmallService | undefined
let there: (Newcomer | Silent)[] = []
afterEach(async () => {
  for (const each of there) each.leave()
  there = []
  await service?.dispose()
})

const status = async (url: string) => (await fetch(url, { keepalive: false })).status

test('[MET2] more clients than descriptors: who cannot be served is told so, and probes and operators are answered', async () => {
  service = await SmallService.start(files)
  const small = service
  const tokens = await tokensFor(small, crowd)
  const newcomers = tokens.map((token, n) => arrive(small, token, n % 2 === 0))
  there = [...newcomers]
  const outcomes = await Promise.all(newcomers.map(({ outcome }) => outcome))

  const inside = newcomers.filter((_, n) => outcomes[n] === 'auth.ok')
  expect(inside.length).toBeGreaterThan(files / 2)
  const others = outcomes.filter((outcome) => outcome !== 'auth.ok')
  expect(others.filter((outcome) => !refused.includes(outcome))).toEqual([])
  expect(new Set(others)).toContain('HTTP 503 SERVICE_UNAVAILABLE')

  expect(await status(`${small.url}/healthz`)).toBe(200)
  const ready = await fetch(`${small.url}/readyz`, { keepalive: false })
  expect([ready.status, await ready.json()]).toEqual([
    503,
    { ok: false, database: 'ok', redis: 'ok', service_ready: false, descriptors: 'low' },
  ])
  expect(await small.metric('process_max_fds')).toBe(files)
  expect(await small.metric('process_open_fds')).toBeLessThan(files)
  expect(await small.metric('ringwire_limited_total{limit="descriptors"}')).toBe(others.length)
  expect(await small.metric('process_resident_memory_bytes')).toBeGreaterThan(10_000_000)
  expect(await small.metric('process_cpu_seconds_total')).toBeGreaterThan(0)
  // The refused clients are gone, so the next look may find just enough room. A few more clients take it.
  const more: Silent[] = []
  await until('the log says so', () => {
    if (small.linesWith('file descriptors run out') > 0) return true
    if (more.length < 10) more.push(beSilent(small))
    return false
  })
  for (const each of more) each.leave()
  expect(small.linesWith('file descriptors run out')).toBe(1)

  for (const each of inside.slice(0, 40)) each.leave()
  await until('there is room again', async () => (await status(`${small.url}/readyz`)) === 200)
  const late = arrive(small, tokens[0] ?? '', true)
  there.push(late)
  expect(await late.outcome).toBe('auth.ok')
}, 120_000)

test('[MET2] connections that say nothing take what is left: operators are answered, and clients when those are gone', async () => {
  service = await SmallService.start(files)
  const small = service
  const token = await small.token({ user_id: 'ann' })
  there = Array.from({ length: crowd }, () => beSilent(small))
  await until('the log says that the port is closed', () => small.linesWith('the port is closed for now') > 0)
  expect(await status(`${small.admin}/healthz`)).toBe(200)
  expect(await status(`${small.admin}/readyz`)).toBe(503)
  expect(await small.metric('process_max_fds')).toBe(files)
  for (const each of there) each.leave()
  await until('the port is open again', async () => {
    try {
      return (await status(`${small.url}/readyz`)) === 200
    } catch {
      return false
    }
  })
  const late = arrive(small, token, true)
  there.push(late)
  expect(await late.outcome).toBe('auth.ok')
}, 120_000)
