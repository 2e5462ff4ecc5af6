import { expect, test } from 'bun:test'
import type { Family } from './families.ts'
import { type AskedWorker, createMachine } from './machine.ts'

/** What real workers do is in test/workers; this is what their time makes rare. */
function createWorker() {
  const end = Promise.withResolvers<void>()
  const asked: PromiseWithResolvers<never>[] = []
  const worker: AskedWorker = {
    ended: end.promise,
    ask() {
      const answer = Promise.withResolvers<never>()
      asked.push(answer)
      return answer.promise
    },
  }
  return {
    worker,
    asked,
    /** Answers what it was asked last. */
    say: (said: unknown) => asked.at(-1)?.resolve(said as never),
    async end() {
      end.resolve()
      for (const { reject } of asked) reject(new Error('gone'))
      await Bun.sleep(0)
    },
  }
}

const told = (count: number): Family[] => [
  { name: 'c_total', help: 'c', type: 'counter', samples: [['c_total', count]] },
  { name: 'g', help: 'g', type: 'gauge', samples: [['g', 1]] },
]

function valuesOf(families: readonly Family[]): Record<string, number> {
  return Object.fromEntries(families.flatMap(({ samples }) => samples))
}

test('a silent worker is not asked again until it has answered; then it is told again', async () => {
  const machine = createMachine({ workers: 2, ownCounts: () => [] })
  const one = createWorker()
  machine.joined(one.worker)
  const first = machine.status.families()
  one.say(told(3))
  expect(valuesOf(await first)).toMatchObject({ c_total: 3, g: 1, 'ringwire_workers{state="gone"}': 1 })
  expect(valuesOf(await machine.status.families())).toMatchObject({ c_total: 3, 'ringwire_workers{state="silent"}': 1 })
  const asked = one.asked.length
  for (let i = 0; i < 100; i++) expect(valuesOf(await machine.status.families()).g).toBeUndefined()
  expect(one.asked).toHaveLength(asked)
  expect((await machine.status.ready()).status).toBe(503)
  one.say(told(4))
  await Bun.sleep(0)
  const again = machine.status.families()
  one.say(told(5))
  expect(valuesOf(await again)).toMatchObject({ c_total: 5, g: 1, 'ringwire_workers{state="answering"}': 1 })
  machine.stop()
})

test('a worker that ends while it is asked is told once', async () => {
  const machine = createMachine({ workers: 1, ownCounts: () => told(100) })
  const one = createWorker()
  machine.joined(one.worker)
  const first = machine.status.families()
  one.say(told(3))
  expect(valuesOf(await first)).toMatchObject({ c_total: 103 })
  const second = machine.status.families()
  await one.end()
  expect(valuesOf(await second)).toEqual({
    c_total: 103,
    'ringwire_workers{state="answering"}': 0,
    'ringwire_workers{state="silent"}': 0,
    'ringwire_workers{state="gone"}': 1,
  })
  expect(await machine.status.ready()).toMatchObject({ status: 503, body: { database: 'unchecked' } })
  machine.stop()
})

test('a machine is ready when all that there are say so, and says which store is away', async () => {
  const machine = createMachine({ workers: 3, ownCounts: () => [] })
  const [one, two] = [createWorker(), createWorker()]
  for (const { worker } of [one, two]) machine.joined(worker)
  const well = { status: 200, body: { ok: true, database: 'ok', redis: 'ok', service_ready: true } }
  const without = { status: 503, body: { ok: false, database: 'ok', redis: 'error', service_ready: false } }
  const answers = async (a: object, b: object) => {
    const ready = machine.status.ready()
    one.say(a)
    two.say(b)
    return ready
  }
  expect(await answers(well, well)).toMatchObject(well)
  expect(await answers(well, without)).toMatchObject(without)
  machine.stop()
})
