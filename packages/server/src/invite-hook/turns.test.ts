import { expect, test } from 'bun:test'
import { createTurns } from './turns.ts'

const never = AbortSignal.any([])
const soon = async <T>(promise: Promise<T>): Promise<T | 'waits'> =>
  Promise.race([promise, Bun.sleep(0).then(() => 'waits' as const)])

test('[HOOK5] 50 questions of a product and 2 of a caller are open at once', async () => {
  const turn = createTurns()
  const callers = Array.from({ length: 25 }, (_, n) => `caller-${n}`)
  for (const caller of [...callers, ...callers]) expect(await soon(turn('shop', caller, never))).toBeFunction()
  expect(await soon(turn('shop', 'another', never))).toBe('waits')
  expect(await soon(turn('clinic', 'caller-1', never))).toBeFunction()
  expect(await soon(turn('clinic', 'caller-1', never))).toBeFunction()
  expect(await soon(turn('clinic', 'caller-1', never))).toBe('waits')
  expect(await soon(turn('clinic', 'caller-2', never))).toBeFunction()
})

test('[HOOK5] who waited longest and may ask comes next, each once', async () => {
  const turn = createTurns({ product: 2, caller: 1 })
  const [one, two] = await Promise.all([turn('shop', 'a', never), turn('shop', 'b', never)])
  const came: string[] = []
  const waiting = ['a', 'c', 'd'].map((caller, n) => turn('shop', caller, never).then(() => came.push(`${caller}${n}`)))
  two?.()
  await Bun.sleep(0)
  // `a` has one open already.
  expect(came).toEqual(['c1'])
  one?.()
  await Bun.sleep(0)
  expect(came).toEqual(['c1', 'a0'])
  expect(await soon(waiting[2] as Promise<number>)).toBe('waits')
})

test('[HOOK5] who waited until its time was over has no turn, and takes none from others', async () => {
  const turn = createTurns({ product: 1, caller: 1 })
  const release = await turn('shop', 'a', never)
  const late = new AbortController()
  const gone = turn('shop', 'b', late.signal)
  const patient = turn('shop', 'c', never)
  late.abort()
  expect(await gone).toBeUndefined()
  release?.()
  expect(await soon(patient)).toBeFunction()
  expect(await turn('shop', 'd', AbortSignal.abort())).toBeUndefined()
})
