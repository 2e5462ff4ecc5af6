import { expect, test } from 'bun:test'
import type { Family } from './families.ts'
import { type AskedWorker, createMachine } from './machine.ts'

/** What real workers do is in test/workers; this is what their time makes rare. */
function createWorker() {
  const end = Promise.withResolvers<void>()
  const asked: PromiseWithResolvers<never>[] = []
  const questions: string[] = []
  const worker: AskedWorker = {
    ended: end.promise,
    ask(question) {
      questions.push(question)
      const answer = Promise.withResolvers<never>()
      asked.push(answer)
      return answer.promise
    },
  }
  return {
    worker,
    asked,
    questions,
    /** Answers the last question. */
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

const asking = { path: 'products/shop/calls', query: '', body: '', operator: 'Olga', address: undefined }
const done = { status: 200, headers: {}, body: 'done' }

test('[ADM2] a worker whose answer to an operator takes long is ready all the same', async () => {
  const machine = createMachine({ workers: 1, ownCounts: () => [], operateMs: 20 })
  const one = createWorker()
  machine.joined(one.worker)
  expect((await machine.status.operate({ ...asking, method: 'POST' })).status).toBe(503)
  const ready = machine.status.ready()
  one.say({ status: 200, body: { ok: true, database: 'ok', redis: 'ok', service_ready: true } })
  expect((await ready).status).toBe(200)
  machine.stop()
})

test('[ADM2] a change goes to the first worker that is not silent, and to no second one', async () => {
  const machine = createMachine({ workers: 3, ownCounts: () => [], operateMs: 20 })
  const [silent, one, two] = [createWorker(), createWorker(), createWorker()]
  machine.joined(silent.worker)
  await machine.status.families()
  machine.joined(one.worker)
  machine.joined(two.worker)
  const answer = machine.status.operate({ ...asking, method: 'POST' })
  one.say(done)
  expect(await (await answer).text()).toBe('done')
  expect((await machine.status.operate({ ...asking, method: 'POST' })).status).toBe(503)
  const count = ({ questions }: typeof one) => questions.filter((question) => question === 'operate').length
  expect([silent, one, two].map(count)).toEqual([0, 2, 0])
  machine.stop()
})

test('[ADM2] a question goes to the next worker where one has no answer', async () => {
  const machine = createMachine({ workers: 2, ownCounts: () => [] })
  const [one, two] = [createWorker(), createWorker()]
  machine.joined(one.worker)
  machine.joined(two.worker)
  const answer = machine.status.operate({ ...asking, method: 'GET' })
  await one.end()
  two.say(done)
  expect(await (await answer).text()).toBe('done')
  machine.stop()
})
