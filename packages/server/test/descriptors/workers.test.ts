import { afterAll, beforeAll, expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { SharedStores } from '../support/stores.ts'
import { arrive, type Newcomer, SmallService, tokensFor } from './crowd.ts'

const files = 150
const crowd = 360
/** They take what becomes free again. */
const latecomers = 60

let stores: SharedStores
let service: SmallService | undefined
const there: Newcomer[] = []
beforeAll(async () => {
  stores = await SharedStores.start()
})
afterAll(async () => {
  for (const each of there) each.leave()
  await service?.dispose()
  await stores.dispose()
})

test('[MET2] more clients than the descriptors of two workers: nobody waits for an answer, operators neither', async () => {
  const env = { ...(await stores.next()), RINGWIRE_WORKERS: '2', RINGWIRE_NODE_ID: 'm', RINGWIRE_LOG_LEVEL: 'warn' }
  service = await SmallService.start(files, env)
  const small = service
  const tokens = await tokensFor(small, crowd + latecomers)
  const others: string[] = []
  async function come(count: number): Promise<void> {
    const newcomers = tokens.splice(0, count).map((token, n) => arrive(small, token, n % 2 === 0))
    expect(newcomers.length).toBe(count)
    there.push(...newcomers)
    const outcomes = await Promise.all(newcomers.map(({ outcome }) => outcome))
    others.push(...outcomes.filter((outcome) => outcome !== 'auth.ok'))
  }
  await come(crowd)
  expect(others.length).toBeGreaterThan(0)
  for (const path of ['/healthz', '/metrics']) {
    expect((await fetch(`${small.admin}${path}`, { keepalive: false })).status).toBe(200)
  }
  // If a connection to a store has closed meanwhile, there is room again until somebody takes it.
  const ready = () => fetch(`${small.admin}/readyz`, { keepalive: false })
  let answer = await ready()
  for (; answer.ok; answer = await ready()) await come(4)
  expect([answer.status, await answer.json()]).toEqual([503, expect.objectContaining({ descriptors: 'low' })])
  const refused = ['HTTP 503 SERVICE_UNAVAILABLE', '1013 SERVICE_UNAVAILABLE']
  expect(others.filter((outcome) => !refused.includes(outcome))).toEqual([])
  // Both workers say it: a connection goes to either of them.
  expect(await small.metric('process_max_fds')).toBe(2 * files)
  expect(await small.metric('ringwire_limited_total{limit="descriptors"}')).toBe(others.length)
  await until('the log says so', () => small.linesWith('file descriptors run out') >= 2)
  expect(small.linesWith('file descriptors run out')).toBe(2)
}, 120_000)
