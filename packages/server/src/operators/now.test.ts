import { expect, test } from 'bun:test'
import { type AskedWorker, createMachine, type Question } from '../observability/machine.ts'
import { createNow } from './now.ts'
import { createSamples } from './samples.ts'

const none = [0, 0, 0, 0, 0]
const ready = { status: 200, body: { ok: true, database: 'ok', redis: 'ok', service_ready: true } }
const clock = { at: 0 }

/** A worker that answers until it hangs. */
function createWorker(node: string) {
  const state = { sockets: 1, isHung: false }
  const answers: Partial<Record<Question, () => unknown>> = {
    ready: () => ready,
    present: () => ({
      ...{ node, sockets: state.sockets, others: [], absent: { stores: {}, nodes: {} } },
      calls: { ringing: none, accepted: none, connected: none },
    }),
  }
  const worker: AskedWorker = {
    ended: new Promise(() => {}),
    ask: (question) => (state.isHung ? new Promise(() => {}) : Promise.resolve(answers[question]?.() as never)),
  }
  return { worker, state }
}

async function startTwo() {
  const machine = createMachine({ workers: 2, ownCounts: () => [] })
  const [one, two] = [createWorker('m-1'), createWorker('m-2')]
  for (const { worker } of [one, two]) machine.joined(worker)
  const samples = createSamples({ families: () => [], now: () => clock.at })
  const show = createNow({ status: machine.status, samples, now: () => clock.at })
  expect((await show(0)).connections).toBe(2)
  return { machine, show, two: two.state, one: one.state }
}

test('[ADM2] a worker that hangs does not hold up Now: its figures of before are shown, and then none', async () => {
  const { machine, show, one, two } = await startTwo()
  two.isHung = true
  one.sockets = 5
  // Both workers have up to 1 s, so an answer that comes first did not wait for them.
  const asked = show(0)
  const waited = (async () => void (await machine.status.present()))()
  const first = await Promise.race([asked, waited])
  expect(first?.connections).toBe(2)
  await machine.status.ready()
  const { connections, nodes } = await show(0)
  expect([connections, nodes.map(({ node }) => node)]).toEqual([5, ['m-1']])
  machine.stop()
})

test('[ADM2] figures that are older than ten seconds are not shown: Now waits for others', async () => {
  const { machine, show, one, two } = await startTwo()
  two.isHung = true
  one.sockets = 5
  clock.at += 10_001
  expect((await show(0)).connections).toBe(5)
  machine.stop()
})
