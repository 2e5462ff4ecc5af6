import { expect, test } from 'bun:test'
import { createUnsent } from './unsent.ts'

/** Sockets by name with what waits there, and the work that was put off. */
function setUp(limit: number) {
  const waiting = new Map<string, number>()
  const due: (() => void)[] = []
  const closed: string[] = []
  let looks = 0
  const unsent = createUnsent<string>({
    limit,
    sockets() {
      looks++
      return waiting
    },
    close(name) {
      closed.push(name)
      set(name, 0)
    },
    later: (work) => void due.push(work),
  })
  const set = (name: string, bytes: number) => {
    const before = waiting.get(name) ?? 0
    waiting.set(name, bytes)
    unsent.add(bytes - before)
  }
  const run = () => {
    for (const work of due.splice(0)) work()
  }
  return { waiting, closed, set, looks: () => looks, run }
}

test('[WS7] over the limit of the process the sockets that owe the most are closed, until nine tenths are left', () => {
  const { set, run, closed } = setUp(100)
  for (const [name, bytes] of Object.entries({ a: 10, b: 40, c: 30, d: 20 })) set(name, bytes)
  run()
  expect(closed).toEqual([])
  set('e', 25)
  expect(closed).toEqual([])
  run()
  expect(closed).toEqual(['b'])
  set('f', 90)
  run()
  expect(closed).toEqual(['b', 'f'])
})

test('[WS7] what was sent since does not count, and one look serves a whole turn', () => {
  const { set, run, closed, waiting, looks } = setUp(100)
  for (let n = 0; n < 50; n++) set(`socket-${n}`, 10)
  for (let n = 0; n < 45; n++) waiting.set(`socket-${n}`, 0)
  run()
  expect([closed, looks()]).toEqual([[], 1])
})
