import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { Participant } from '../call/call.ts'
import type { OnlineStore } from '../ports/online.ts'
import { openHarness, type SqliteHarness, unhurried } from '../stores/sqlite/open.fixture.ts'
import { createOnline, type Online } from './online.ts'

const ann: Participant = { product: 'shop', role: 'agent', userId: 'ann' }
const startMs = 15_000
const goneMs = 5_000

let harness: SqliteHarness
let now: number
let online: Online
let errors: unknown[]

beforeEach(async () => {
  harness = await openHarness(unhurried)
  now = 1_000_000
  errors = []
})
afterEach(async () => {
  online.stop()
  await harness.close()
  expect(errors).toEqual([])
})

/** A node that has just started; others have left the row of somebody. */
async function start(): Promise<(ms: number) => Promise<void>> {
  const store = harness.stores().online
  await store.write('dead', [{ participant: ann, comes: true }], now)
  const asked: unknown[] = []
  const follow = <T>(answer: T) => {
    asked.push(answer)
    return answer
  }
  const followed: OnlineStore = {
    write: (...all) => follow(store.write(...all)),
    nodes: () => follow(store.nodes()),
    of: (node) => follow(store.of(node)),
    erase: (participant) => store.erase(participant),
  }
  let work = () => {}
  online = createOnline({
    store: followed,
    self: 'self',
    isDead: () => false,
    hooked: () => new Set([ann.product]),
    now: () => now,
    wall: () => now,
    every(_, what) {
      work = what
      return () => {}
    },
    onError: (error) => errors.push(error),
  })
  online.start()
  /** This time passes; everything that is due then has been done. */
  return async (ms) => {
    now += ms
    work()
    for (let done = -1; done < asked.length; await Bun.sleep(0)) {
      done = asked.length
      await Promise.all(asked)
    }
  }
}
const rows = async () => Object.fromEntries(await harness.stores().online.nodes())

test('[HOOK2] a death that a node hears of in its first 15 s: people have that long to come back', async () => {
  const pass = await start()
  online.died('dead', false)
  await pass(startMs - 1)
  expect(await rows()).toEqual({ dead: 1 })
  online.opened(ann)
  await pass(1)
  expect(await rows()).toEqual({ self: 1 })
})

test('[HOOK2] later the rows of a node that died go at once, and of one that has stopped after 5 s', async () => {
  const pass = await start()
  await pass(startMs)
  online.died('dead', true)
  await pass(goneMs - 1)
  expect(await rows()).toEqual({ dead: 1 })
  online.died('dead', false)
  await pass(0)
  expect(await rows()).toEqual({})
})
