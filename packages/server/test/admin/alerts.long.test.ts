import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Client } from '@ringwire/testkit/client'
import { someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { becomesReady, worldFor } from '../failures/world.ts'
import { adminUrlOf } from './observed.ts'
import { type Alert, type Prometheus, startPrometheus } from './prometheus.ts'

/* Real outages of two nodes, a real Prometheus that asks both, and the alerts of deploy/prometheus with shorter times. */

let behindProxy = ''
const slow = new TcpProxy(() => behindProxy)
const world = worldFor({
  env: { RINGWIRE_ADMIN_PORT: '0', RINGWIRE_INVITE_RATE: 'off', RINGWIRE_PAIR_INVITE_RATE: 'off' },
  async databaseUrlOf(url, node) {
    if (node === 'two') return url
    behindProxy = url
    await slow.start()
    const through = new URL(url)
    through.port = String(slow.port)
    return through.href
  },
  atEnd: () => slow.stop(),
})

let prometheus: Prometheus
let caller: Client
let load: Timer
beforeAll(async () => {
  const { one, two } = world()
  prometheus = await startPrometheus({ one: await adminUrlOf(one), two: await adminUrlOf(two) })
  caller = await one.connect({ user_id: someone('caller'), role: 'customer' })
  const calleeId = someone('callee')
  // People who call and think better of it, whatever the node says to that.
  load = setInterval(() => {
    const call_uuid = crypto.randomUUID()
    caller.send('call.invite', { call_uuid, callee_user_id: calleeId, callee_role: 'agent' })
    caller.send('call.cancel', { call_uuid })
  }, 250)
}, 240_000)
afterAll(async () => {
  clearInterval(load)
  await prometheus?.stop()
})

const nameOf = ({ labels }: Alert) => [labels.alertname, labels.instance, labels.store].filter(Boolean).join(' ')
const names = async () => (await prometheus.firing()).map(nameOf).sort()

/** Resolves with the alert when it fires. */
async function fires(name: string): Promise<Alert> {
  let found: Alert | undefined
  await until(
    `${name} fires`,
    async () => {
      found = (await prometheus.firing()).find((alert) => nameOf(alert) === name)
      return found !== undefined
    },
    240_000,
  )
  return found as Alert
}

const areOver = () => until('no alert fires any more', async () => (await names()).length === 0, 90_000)

test('[MET1] no alert fires where all is well', async () => {
  // Every alert has its data: both stores were tried again and again, and people call.
  const known = [
    'min by (instance) (increase(ringwire_store_seconds_count{operation="check"}[12s]))',
    'sum by (instance) (rate(ringwire_requests_total{event=~"call[.].+",result="ok"}[12s]))',
    'sum by (instance) (rate(ringwire_store_seconds_count{operation="commit"}[12s]))',
  ]
  for (const query of known) {
    await until(query, async () => ((await prometheus.query(query)).one ?? 0) > 0, 60_000)
  }
  expect(await prometheus.query('up')).toEqual({ one: 1, two: 1 })
  expect(await names()).toEqual([])
}, 240_000)

test('[MET1] a database that is slow: RingwireStoreSlow, at the node for which it is', async () => {
  for (const link of slow.open) link.delay(200)
  slow.onLink = (link) => link.delay(200)
  const alert = await fires('RingwireStoreSlow one database')
  expect(alert.annotations.summary).toMatch(/^commit of database takes .+ at one$/)
  expect(await names()).toEqual(['RingwireStoreSlow one database'])
  slow.onLink = () => {}
  for (const link of slow.open) link.delay(0)
  await areOver()
}, 240_000)

test('[MET1] Redis is killed: RingwireStoreGone, at both nodes, and for that store alone', async () => {
  const { one, two, redis } = world()
  await redis.kill()
  const alerts = [await fires('RingwireStoreGone one redis'), await fires('RingwireStoreGone two redis')]
  expect(alerts.map(({ annotations }) => annotations.summary)).toEqual(['one has no redis', 'two has no redis'])
  expect((await names()).filter((name) => name.endsWith('database'))).toEqual([])
  await redis.restart()
  await becomesReady(one, two)
  await areOver()
}, 240_000)

test('[MET1] calls that fail: RingwireCallsFailing, at the node that refuses them', async () => {
  const { one, postgres } = world()
  await postgres.kill()
  const alert = await fires('RingwireCallsFailing one')
  expect(alert.annotations.summary).toMatch(/^[\d.]+% of what calls ask for is refused at one$/)
  expect(await names()).not.toContain('RingwireCallsFailing two')
  await fires('RingwireStoreGone one database')
  await postgres.up()
  await becomesReady(one)
  await areOver()
}, 240_000)

test('[MET1] a node is killed: RingwireNodeGone, for that one', async () => {
  await world().two.kill()
  const alert = await fires('RingwireNodeGone two')
  expect(alert.annotations.summary).toBe('two does not answer')
  expect((await names()).filter((name) => name.startsWith('RingwireNodeGone'))).toEqual(['RingwireNodeGone two'])
}, 240_000)
