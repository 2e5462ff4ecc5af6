import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '@ringwire/testkit/patience'
import { freePort } from '@ringwire/testkit/ports'
import { makeTemporaryDirectory, type RunningProcess, startProcess } from '@ringwire/testkit/process'
import { systemProgram } from '@ringwire/testkit/system'
import { deploy } from '../deploy/compose.ts'

/** An alert as Prometheus tells of it. */
export interface Alert {
  readonly state: 'pending' | 'firing'
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

export interface Prometheus {
  /** The alerts that fire now. */
  firing(): Promise<readonly Alert[]>
  /** The values of a query, by their instance. */
  query(expression: string): Promise<Readonly<Record<string, number>>>
  stop(): Promise<void>
}

/** What lasts minutes for people lasts seconds here. A node tries its stores every 5 s: a window has to hold two tries. */
const shorter = 30
const shortestWindowS = 12
/** So long a node that has just started has one try. */
const shortestForS = 6

/** The alerts of deploy/, with their times shortened and nothing else. */
export function shortened(alerts: string): string {
  const seconds = (count: string, unit: string) => Number(count) * (unit === 'm' ? 60 : 1)
  return alerts
    .replace(/\[(\d+)(s|m)\]/g, (_, n, unit) => `[${Math.max(shortestWindowS, seconds(n, unit) / shorter)}s]`)
    .replace(/for: (\d+)(s|m)$/gm, (_, n, unit) => `for: ${Math.max(shortestForS, seconds(n, unit) / shorter)}s`)
}

/** Starts the real one, which asks these nodes every second. */
export async function startPrometheus(targets: Readonly<Record<string, string>>): Promise<Prometheus> {
  const { path, remove } = await makeTemporaryDirectory()
  mkdirSync(join(path, 'data'))
  const alerts = readFileSync(join(deploy, 'prometheus', 'alerts.yaml'), 'utf8')
  writeFileSync(join(path, 'alerts.yaml'), shortened(alerts))
  const scrapes = Object.entries(targets).map(([instance, url]) => ({
    targets: [new URL(url).host],
    labels: { instance },
  }))
  // JSON is YAML.
  writeFileSync(
    join(path, 'prometheus.yaml'),
    JSON.stringify({
      global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
      rule_files: ['alerts.yaml'],
      scrape_configs: [{ job_name: 'ringwire', static_configs: scrapes }],
    }),
  )
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const program: RunningProcess = startProcess([
    systemProgram('prometheus'),
    `--config.file=${join(path, 'prometheus.yaml')}`,
    `--storage.tsdb.path=${join(path, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ])
  // biome-ignore lint/suspicious/noExplicitAny: its answers are its own.
  const ask = async (what: string): Promise<any> => {
    const response = await fetch(`${url}/api/v1/${what}`)
    if (response.status !== 200) throw new Error(`${what}: ${response.status} ${await response.text()}`)
    return ((await response.json()) as { data: unknown }).data
  }
  const isReady = () =>
    fetch(`${url}/-/ready`).then(
      ({ status }) => status === 200,
      () => false,
    )
  try {
    await until('Prometheus is ready', isReady)
  } catch (error) {
    await program.stop('SIGKILL')
    throw new Error(`${error}\n${program.output}`)
  }
  return {
    async firing() {
      const { alerts } = (await ask('alerts')) as { alerts: Alert[] }
      return alerts.filter(({ state }) => state === 'firing')
    },
    async query(expression) {
      const { result } = await ask(`query?query=${encodeURIComponent(expression)}`)
      const values = result as { metric: { instance: string }; value: [number, string] }[]
      return Object.fromEntries(values.map(({ metric, value }) => [metric.instance, Number(value[1])]))
    },
    async stop() {
      await program.stop()
      await remove()
    },
  }
}
