import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeTemporaryDirectory } from '@ringwire/testkit/process'
import { deploy } from '../deploy/compose.ts'
import { until, worldFor } from '../failures/world.ts'
import { type Metrics, metricsOf, promtool } from './observed.ts'

const world = worldFor({ env: { RINGWIRE_ADMIN_PORT: '0' } })
const check = (store: string) => `ringwire_store_seconds_count{store="${store}",operation="check"}`
const at = (metrics: Metrics, name: string) => metrics.get(name) ?? 0

test('[MET1] Redis is killed: what the node tells fires the alert for it, and none for the database', async () => {
  const { one, redis } = world()
  await until('both stores were tried', async () => {
    const metrics = await metricsOf(one)
    return at(metrics, check('redis')) > 0 && at(metrics, check('database')) > 0
  })
  const well = await metricsOf(one)
  await redis.kill()
  const sumOfErrors = (metrics: Metrics) =>
    [...metrics].reduce(
      (sum, [name, value]) => sum + (name.startsWith('ringwire_store_errors_total{store="redis"') ? value : 0),
      0,
    )
  await until('Redis was tried in vain', async () => sumOfErrors(await metricsOf(one)) > sumOfErrors(well))
  const first = await metricsOf(one)
  // Two rounds of tries later.
  await until(
    'the database was tried again',
    async () => at(await metricsOf(one), check('database')) >= at(first, check('database')) + 2,
    30_000,
  )
  const later = await metricsOf(one)
  expect(at(later, check('redis'))).toBe(at(first, check('redis')))
  await redis.restart()

  // The same again every 15 s: what Prometheus would have seen, had the outage lasted.
  const grows = (name: string) => Math.max(0, at(later, name) - at(first, name))
  const series = ['redis', 'database'].map((store) => ({
    series: check(store).replace('{', '{instance="one",'),
    values: `${at(first, check(store))}+${grows(check(store))}x20`,
  }))
  const { path, remove } = await makeTemporaryDirectory()
  const file = join(path, 'outage.yaml')
  const fired = {
    exp_labels: { instance: 'one', store: 'redis', operation: 'check', severity: 'page' },
    exp_annotations: {
      summary: 'one has no redis',
      description: 'Bring the store back, and leave the nodes alone. Answered calls go on.',
    },
  }
  writeFileSync(
    file,
    JSON.stringify({
      rule_files: [join(deploy, 'prometheus', 'alerts.yaml')],
      evaluation_interval: '15s',
      tests: [
        {
          interval: '15s',
          input_series: series,
          alert_rule_test: [{ eval_time: '4m', alertname: 'RingwireStoreGone', exp_alerts: [fired] }],
        },
      ],
    }),
  )
  expect(await promtool(['test', 'rules', file])).toMatchObject({ code: 0 })
  await remove()
}, 120_000)
