import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ownDescriptors } from '../../src/observability/descriptors.ts'
import { createMachine } from '../../src/observability/machine.ts'
import { createMetrics, nobody } from '../../src/observability/metrics.ts'
import { processFamilies } from '../../src/observability/process-metrics.ts'
import { createSpanCounter } from '../../src/traces/exporter.ts'
import { deploy } from '../deploy/compose.ts'
import { promtool } from './observed.ts'

const alerts = join(deploy, 'prometheus', 'alerts.yaml')
const dashboard = JSON.parse(readFileSync(join(deploy, 'grafana', 'ringwire.json'), 'utf8'))
const queries: readonly string[] = dashboard.panels.flatMap(({ targets }: { targets: { expr: string }[] }) =>
  targets.map(({ expr }) => expr),
)

/** The metrics that there are, and the parts of a histogram that alerts use. */
const meter = createMetrics({ node: 'n', version: '1', stores: ['database'] })
const machine = createMachine({ workers: 2, ownCounts: () => [] })
const served = [
  ...meter.families(nobody),
  ...(await machine.status.families()),
  ...processFamilies(ownDescriptors()),
  createSpanCounter().family(),
]
const names = served.flatMap(({ name, type }) =>
  type === 'histogram' ? [`${name}_bucket`, `${name}_count`, `${name}_sum`] : [name],
)
machine.stop()
const namesIn = (text: string) => text.match(/\b(?:ringwire|process)_[a-z_]+/g) ?? []

test('[MET1] each alert fires once on what it is for, and none where all is well', async () => {
  expect(await promtool(['check', 'rules', alerts])).toMatchObject({ code: 0 })
  const told = await promtool(['test', 'rules', join(deploy, 'prometheus', 'alerts.test.yaml')])
  expect(told).toMatchObject({ code: 0, said: expect.stringContaining('SUCCESS') })
  const all =
    readFileSync(alerts, 'utf8')
      .match(/alert: \w+/g)
      ?.map((it) => it.slice('alert: '.length)) ?? []
  const tested = readFileSync(join(deploy, 'prometheus', 'alerts.test.yaml'), 'utf8')
  expect(all).toHaveLength(4)
  for (const name of all) expect(tested).toMatch(new RegExp(`alertname: ${name}\\n +exp_alerts:\\n +- exp_labels`))
})

test('[MET1] [MET2] alerts and dashboard ask for metrics that there are, and the dashboard shows all of them', () => {
  const asked = [...queries.flatMap(namesIn), ...namesIn(readFileSync(alerts, 'utf8'))]
  expect(asked.filter((name) => !names.includes(name))).toEqual([])
  const families = names.map((name) => name.replace(/_(bucket|count|sum)$/, ''))
  const shown = queries.flatMap(namesIn).map((name) => name.replace(/_(bucket|count|sum)$/, ''))
  expect(families.filter((name) => !shown.includes(name))).toEqual([])
})

test('Prometheus can read every query of the dashboard', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ringwire-dashboard-'))
  const rules = queries.map((expr, i) => ({ record: `query:${i}`, expr: expr.replaceAll('$instance', '.*') }))
  const file = join(folder, 'rules.yaml')
  // JSON is YAML.
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }))
  expect(await promtool(['check', 'rules', file])).toMatchObject({
    code: 0,
    said: expect.stringContaining(`${queries.length} rules found`),
  })
  rmSync(folder, { recursive: true })
})
