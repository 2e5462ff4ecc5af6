import { expect, test } from 'bun:test'
import type { Missing } from '../ports/missing-sessions.ts'
import { newSessionId } from '../ports/session-id.ts'
import { somebody } from '../ports/sessions.fixture.ts'
import type { Master } from './directory.port.ts'
import { createMakingUp } from './making-up.ts'

/** Servers that were emptied, or not, and the nodes that start on them. `onWait` hears of each wait of a node. */
function setUp(emptied: readonly string[], used: readonly string[] = [], onWait: () => void = () => {}) {
  const makers = new Map<string, string>()
  const untouched = new Set(emptied)
  const dead = new Set<string>()
  const complete = new Set([...emptied, ...used])
  const masters = [...emptied, ...used].map((name): Master => ({ name, origin: 'origin', marker: `at ${name}` }))
  const nameOf = (marker: string) => marker.slice('at '.length)
  /** Sessions are spread by the first character of their tag. */
  const masterOf = (tag: string) => masters[tag.charCodeAt(0) % masters.length]?.name ?? ''
  let waits = 0

  function start(node: string) {
    return createMakingUp({
      node,
      directory: {
        masters: async () => masters,
        masterOf,
        async maker(marker, instead) {
          const name = nameOf(marker)
          if (untouched.delete(name) || (instead !== undefined && makers.get(name) === instead)) makers.set(name, node)
          return makers.get(name)
        },
        async made(marker) {
          makers.delete(nameOf(marker))
        },
      },
      isDead: async (other) => dead.has(other),
      look: async () => {},
      isComplete: (name) => complete.has(name),
      timers: {
        sleep: async () => {
          waits++
          onWait()
          await Bun.sleep(0)
        },
      },
    })
  }

  return { start, makers, dead, complete, masterOf, waits: () => waits }
}

/** The masters whose sessions are missing. */
function mastersIn(missing: Missing | undefined, masterOf: (tag: string) => string): string[] {
  const ids = Array.from({ length: 200 }, () => newSessionId(somebody()))
  return [...new Set(ids.filter((id) => missing?.isOf(id)).map(masterOf))].sort()
}

test('[RES3] of nodes that start at once on a server that was emptied one makes up its sessions, and the others wait for that', async () => {
  const waited = Promise.withResolvers<void>()
  const { start, masterOf } = setUp(['a'], [], waited.resolve)
  const [one, two] = [start('one'), start('two')]
  const missing = await one.next()
  expect(mastersIn(missing, masterOf)).toEqual(['a'])
  expect(missing?.wasBegun).toBe(false)
  let isOver = false
  const other = two.next().then((next) => {
    isOver = true
    return next
  })
  await waited.promise
  expect([isOver, two.isStarting]).toEqual([false, true])
  await one.made()
  expect([await one.next(), await other]).toEqual([undefined, undefined])
  expect([one.isStarting, two.isStarting]).toEqual([false, false])
})

test('[RES3] the node that makes them up dies: another one begins again, and knows that some may be there', async () => {
  const { start, dead, masterOf } = setUp(['a'])
  await start('one').next()
  const two = start('two')
  const taken = two.next()
  dead.add('one')
  const missing = await taken
  expect(mastersIn(missing, masterOf)).toEqual(['a'])
  expect(missing?.wasBegun).toBe(true)
  await two.made()
  expect(await two.next()).toBeUndefined()
})

test('[RES3] of several servers only the sessions of those that were emptied are missing', async () => {
  const { start, masterOf } = setUp(['a', 'b'], ['c'])
  const one = start('one')
  expect(mastersIn(await one.next(), masterOf)).toEqual(['a', 'b'])
  await one.made()
  expect(await one.next()).toBeUndefined()
})

test('[RES3] nothing was emptied: a start waits for nothing', async () => {
  const { start, waits } = setUp([], ['a', 'b'])
  expect(await start('one').next()).toBeUndefined()
  expect(waits()).toBe(0)
})

test('[RES4] a node that serves writes again what it owns: nothing is made up', async () => {
  const seen: (string | undefined)[] = []
  const { start, makers, complete } = setUp(['a'], [], () => {
    seen.push(makers.get('a'))
    // As the other node says its word there.
    makers.delete('a')
    complete.add('a')
  })
  complete.clear()
  expect(await start('one').next()).toBeUndefined()
  expect(seen).toEqual(['one'])
})

test('[RES4] a node that lives, and cannot write again what it owns, serves all the same: nothing is made up', async () => {
  const { start, makers, complete, waits } = setUp(['a'])
  complete.clear()
  expect(await start('one').next()).toBeUndefined()
  expect([makers.size, waits()]).toEqual([0, 101])
})
