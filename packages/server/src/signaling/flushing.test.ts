import { beforeEach, expect, test } from 'bun:test'
import { createSystemTimers } from '../time/timers.ts'
import type { Connection } from './connection.ts'
import { createFlushing } from './flushing.ts'

/** What happened, in order: `seal a`, `write a`, and `save`. */
let log: string[]
let failed: string[]
let save: () => Promise<void> | undefined
beforeEach(() => {
  log = []
  failed = []
  save = () => undefined
})

interface Owed {
  /** Answers whether it could not be written. */
  readonly onFlush?: (isSaved: boolean) => boolean
  /** Nothing but what peers of a base session sent. */
  readonly isAhead?: boolean
}

/** A socket that is owed something. */
const socket = (name: string, { onFlush = () => false, isAhead = false }: Owed = {}) =>
  ({
    name,
    writeAhead() {
      if (isAhead) log.push(`ahead ${name}`)
      return isAhead
    },
    seal: () => void log.push(`seal ${name}`),
    flush(_: number, isSaved: boolean) {
      log.push(`${isSaved ? 'write' : 'unsaved'} ${name}`)
      return onFlush(isSaved)
    },
  }) as unknown as Connection

const open = () =>
  createFlushing({
    save: () => {
      const saving = save()
      if (saving !== undefined) log.push('save')
      return saving
    },
    timers: createSystemTimers(),
    onFailed: (connection) => void failed.push((connection as unknown as { name: string }).name),
  })
const turn = () => new Promise(setImmediate)

test('all that came in a turn is written at its end, at once where nothing is to be saved', async () => {
  const flushing = open()
  flushing.request(socket('a'))
  flushing.request(socket('b'))
  expect(log).toEqual([])
  await turn()
  expect(log).toEqual(['seal a', 'seal b', 'write a', 'write b'])
  expect(flushing.isSaved()).toBe(true)
})

test('[EXT3] nothing is written before it is saved, and what comes meanwhile goes with the next save', async () => {
  const saves: (() => void)[] = []
  save = () => new Promise((resolve) => void saves.push(resolve))
  const flushing = open()
  flushing.request(socket('a'))
  await turn()
  flushing.request(socket('b'))
  await turn()
  expect(log).toEqual(['seal a', 'save'])
  saves[0]?.()
  await turn()
  expect(log).toEqual(['seal a', 'save', 'write a', 'seal b', 'save'])
  expect(flushing.isSaved()).toBe(false)
  saves[1]?.()
  await turn()
  expect(log.at(-1)).toBe('write b')
})

test('[EXT3] where it could not be saved it is said so, and what has to be saved is tried again', async () => {
  let isAway = true
  save = () => (isAway ? Promise.reject(new Error('away')) : undefined)
  const flushing = open()
  const { promise: written, resolve } = Promise.withResolvers<void>()
  flushing.request(
    socket('a', {
      onFlush(isSaved) {
        if (isSaved) resolve()
        return !isSaved
      },
    }),
  )
  flushing.request(socket('b'))
  await turn()
  await turn()
  expect(log.filter((it) => it.startsWith('unsaved'))).toEqual(['unsaved a', 'unsaved b'])
  isAway = false
  await written
  expect(log.slice(-2)).toEqual(['seal a', 'write a'])
})

test('[EXT3] what came before a save failed may have been in it: it is not told as saved', async () => {
  const saves: ((error: Error) => void)[] = []
  save = () => (saves.length === 0 ? new Promise((_, reject) => void saves.push(reject)) : undefined)
  const flushing = open()
  flushing.request(socket('a'))
  await turn()
  flushing.request(socket('b'))
  await turn()
  flushing.request(socket('c'))
  saves[0]?.(new Error('another node has one of the sessions'))
  await turn()
  expect(log).toEqual(['seal a', 'save', 'unsaved a', 'seal b', 'seal c', 'unsaved b', 'unsaved c'])
  flushing.request(socket('d'))
  await turn()
  expect(log.slice(-2)).toEqual(['seal d', 'write d'])
})

test('one that fails takes nobody along', async () => {
  const flushing = open()
  flushing.request(
    socket('a', {
      onFlush() {
        throw new Error('a bug')
      },
    }),
  )
  flushing.request(socket('b'))
  await turn()
  expect([failed, log.at(-1)]).toEqual([['a'], 'write b'])
})

test('[EXT3] what needs no save is written in each turn, and saved with the next save all the same', async () => {
  const saves: (() => void)[] = []
  save = () => new Promise((resolve) => void saves.push(resolve))
  const flushing = open()
  const base = socket('base', { isAhead: true })
  flushing.request(base)
  flushing.request(socket('a'))
  await turn()
  expect(log).toEqual(['ahead base', 'seal a', 'save'])
  flushing.request(base)
  await turn()
  expect(log.slice(3)).toEqual(['ahead base'])
  saves[0]?.()
  await turn()
  expect(log.slice(4)).toEqual(['write a', 'save'])
  saves[1]?.()
  await turn()
  expect(log.length).toBe(6)
})

test('where many are owed something, a save that is under way gathers more of it', async () => {
  const saves: (() => void)[] = []
  save = () => new Promise((resolve) => void saves.push(resolve))
  const flushing = open()
  flushing.request(socket('a'))
  await turn()
  const many = Array.from({ length: 9 }, (_, i) => `${i}`)
  for (const name of many) flushing.request(socket(name, { isAhead: true }))
  await turn()
  expect(log).toEqual(['seal a', 'save'])
  saves[0]?.()
  await turn()
  expect(log.slice(2)).toEqual(['write a', ...many.map((name) => `ahead ${name}`), 'save'])
})

test('many that wait for a save under way wait no longer than a moment: the store may hang', async () => {
  save = () => new Promise(() => {})
  const flushing = open()
  flushing.request(socket('a'))
  await turn()
  const { promise: written, resolve } = Promise.withResolvers<void>()
  const last = socket('last', { isAhead: true })
  last.writeAhead = () => {
    resolve()
    return true
  }
  for (let i = 0; i < 9; i++) flushing.request(socket(`${i}`, { isAhead: true }))
  flushing.request(last)
  await written
  expect(log.slice(2)).toHaveLength(9)
})
