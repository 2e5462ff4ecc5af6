import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import type { Client } from '@ringwire/testkit/client'
import { invite, type Pair, someone } from '@ringwire/testkit/flows'
import { soon, until } from '@ringwire/testkit/patience'
import type { Service } from '@ringwire/testkit/service'
import { adminUrlOf, type Metrics, metricsOf, promtool, untilMetrics } from '../admin/observed.ts'
import { workersOf } from '../support/workers.ts'
import { baseOn, linesOf, machinesFor } from './machine.ts'

const { startWorkers } = machinesFor()
const at = (metrics: Metrics, name: string) => metrics.get(name) ?? 0
const workersIn = (metrics: Metrics, state: string) => at(metrics, `ringwire_workers{state="${state}"}`)
const invites = 'ringwire_requests_total{event="call.invite",result="ok"}'

/** What only grows, by its name. */
const isCount = (name: string) => /^ringwire_\w+_(total|count|sum|bucket)\b/.test(name)

/** Counts of the first that the second has less of. */
function fallen(before: Metrics, after: Metrics): string[] {
  return [...before].filter(([name, value]) => isCount(name) && at(after, name) < value).map(([name]) => name)
}

describe('metrics of a machine with two workers', () => {
  let service: Service
  beforeAll(async () => {
    service = await startWorkers({ RINGWIRE_WORKERS: '2', RINGWIRE_ADMIN_PORT: '0' })
  })
  afterAll(async () => {
    // The channel to its workers keeps nobody from ending.
    expect(await service.terminate()).toBe(0)
    await service.dispose()
  })

  const people: Client[] = []
  afterEach(async () => {
    await Promise.all(people.splice(0).map((client) => client.close()))
  })

  /** The first metrics that are so. */
  async function metricsWhen(what: string, isSo: (metrics: Metrics) => boolean): Promise<Metrics> {
    let found: Metrics = new Map()
    await untilMetrics(service, what, (metrics) => {
      found = metrics
      return isSo(metrics)
    })
    return found
  }
  const hasFour = (metrics: Metrics) => at(metrics, 'ringwire_connections') === 4

  /** Two sockets and a call on a worker. */
  async function callOn(node: string): Promise<Pair> {
    const calleeId = someone('callee')
    const caller = await baseOn(node, service, someone('caller'), 'customer')
    const callee = await baseOn(node, service, calleeId, 'agent')
    people.push(caller, callee)
    await invite(caller, calleeId)
    return { caller, callee }
  }

  test('[ADM1] [MET1] one listener tells the sum of all workers', async () => {
    const before = await metricsOf(service)
    for (const node of ['m-1', 'm-2']) await callOn(node)
    const during = await metricsWhen('others have left', hasFour)
    expect(Object.fromEntries(during)).toMatchObject({
      'ringwire_workers{state="answering"}': 2,
      'ringwire_workers{state="silent"}': 0,
      'ringwire_workers{state="gone"}': 0,
      'ringwire_calls{status="ringing"}': 2,
      [invites]: 2,
    })
    expect(fallen(before, during)).toEqual([])
    const nodes = [...during.keys()].filter((name) => name.startsWith('ringwire_build_info'))
    expect(nodes.join()).toMatch(/node="m-1".*node="m-2"/)
    const url = await adminUrlOf(service)
    const text = await (await fetch(`${url}/metrics`)).text()
    expect(await promtool(['check', 'metrics'], text)).toEqual({ code: 0, said: '' })
    // A try that takes longer than 1 s counts as none.
    await until('both are ready', async () => (await fetch(`${url}/readyz`)).status === 200)
    expect(linesOf(service).filter(({ message }) => message === 'listening for operators')).toMatchObject([
      { nodeId: 'm' },
    ])
  })

  test('[MET1] a worker that is killed: its counts stay, its gauges go', async () => {
    await callOn('m-1')
    const two = await callOn('m-2')
    const before = await metricsWhen('others have left', hasFour)
    process.kill(workersOf(service.pid).get(2) ?? 0, 'SIGKILL')
    await Promise.all([two.caller.closed, two.callee.closed])
    let last = before
    await untilMetrics(service, 'it is gone, and never does a count fall', (metrics) => {
      expect(fallen(last, metrics)).toEqual([])
      last = metrics
      return workersIn(metrics, 'gone') === 1 && workersIn(metrics, 'answering') === 1
    })
    expect(at(last, 'ringwire_connections')).toBe(2)
    expect([...last.keys()].filter((name) => name.includes('node="m-2"'))).toEqual([])
    expect(at(last, invites)).toBe(at(before, invites))
    await untilMetrics(service, 'it is back, and never does a count fall', (metrics) => {
      expect(fallen(last, metrics)).toEqual([])
      last = metrics
      return workersIn(metrics, 'answering') === 2
    })
  })

  test('[MET1] a worker that hangs: it is told within a bounded time, and its counts stay', async () => {
    const before = await metricsWhen('both answer', (metrics) => workersIn(metrics, 'answering') === 2)
    const pid = workersOf(service.pid).get(2) ?? 0
    process.kill(pid, 'SIGSTOP')
    try {
      const begin = performance.now()
      await metricsOf(service)
      expect(performance.now() - begin).toBeLessThan(soon(2_000))
      const during = await metricsWhen('the other one answers', (metrics) => workersIn(metrics, 'answering') === 1)
      expect(workersIn(during, 'silent')).toBe(1)
      expect(fallen(before, during)).toEqual([])
      expect([...during.keys()].filter((name) => name.includes('node="m-2"'))).toEqual([])
      expect((await fetch(`${await adminUrlOf(service)}/readyz`)).status).toBe(503)
    } finally {
      process.kill(pid, 'SIGCONT')
    }
    await untilMetrics(service, 'it answers again', (metrics) => workersIn(metrics, 'answering') === 2)
    expect(fallen(before, await metricsOf(service))).toEqual([])
  })
})
