import { expect, test } from 'bun:test'
import type { ExtendedAuthOk } from '@ringwire/protocol/events/auth'
import { createKeeper, createSession } from './session.ts'

const authOk = (more: Partial<ExtendedAuthOk>) =>
  ({ session_id: 's1', epoch: 'e 1', recovered: false, handled: 0, active_calls: [], ...more }) as ExtendedAuthOk

test('[RES1] the query names the session, its epoch, the last push and the last reply', () => {
  const session = createSession()
  expect(session.query(0)).toBe('ext=1')
  session.began(authOk({}))
  expect(session.see(1)).toBe('next')
  expect(session.see(2)).toBe('next')
  expect(session.query(7)).toBe('ext=1&resume=s1&epoch=e%201&seq=2&n=7')
})

test('[EXT6] the query lists what the client understands, in each connection', () => {
  const session = createSession(['transfer', 'take'])
  expect(session.query(0)).toBe('ext=1&can=transfer,take')
  session.began(authOk({}))
  expect(session.query(0)).toBe('ext=1&can=transfer,take&resume=s1&epoch=e%201&seq=0&n=0')
  expect(createSession([]).query(0)).toBe('ext=1')
})

test('[EXT1] a push comes once and without gaps', () => {
  const session = createSession()
  session.began(authOk({}))
  expect([session.see(1), session.see(1), session.see(3), session.see(2), session.see(3)]).toEqual([
    ...['next', 'seen', 'gap', 'next', 'next'],
  ] as never)
})

test('[RES2] [RES4] a new session, and a log that was lost, begin again at 1', () => {
  const session = createSession()
  session.began(authOk({}))
  session.see(1)
  session.began(authOk({ recovered: true }))
  expect(session.see(1)).toBe('seen')
  session.began(authOk({ session_id: 's2' }))
  expect(session.query(0)).toContain('resume=s2&epoch=e%201&seq=0')
  session.see(1)
  session.began({ session_id: 's2', epoch: 'e2', active_calls: [] })
  expect(session.query(3)).toBe('ext=1&resume=s2&epoch=e2&seq=0&n=3')
  session.forget()
  expect(session.query(0)).toBe('ext=1')
})

test('what a page left is taken up by the next one, and nothing else is', () => {
  const before = createSession()
  expect(before.snapshot(0)).toBeUndefined()
  before.began(authOk({}))
  before.see(1)
  const left = before.snapshot(4)!
  const session = createSession()
  session.restore(left)
  expect(session.query(0)).toBe('ext=1&resume=s1&epoch=e%201&seq=1&n=4')
  session.began(authOk({ recovered: true }))
  expect(session.query(0)).toContain('n=0')
  for (const text of [null, '', '7', '{}', '{"id":1}', left.replace('"seq":1', '"seq":"1"')]) {
    const other = createSession()
    other.restore(text)
    expect(other.query(0)).toBe('ext=1')
  }
})

test('a slow storage ends with the last word, one write after another', async () => {
  const written: (string | null)[] = []
  let running = 0
  const gate = Promise.withResolvers<void>()
  const write = async (text: string | null) => {
    expect(++running).toBe(1)
    if (written.length === 0) await gate.promise
    written.push(text)
    running--
  }
  const storage = {
    getItem: async () => null,
    setItem: (_: string, text: string) => write(text),
    removeItem: () => write(null),
  }
  const keeper = createKeeper(storage, 'key', () => {})
  for (const text of ['a', 'b', 'c', undefined, 'd']) keeper.save(text)
  gate.resolve()
  await new Promise((resolve) => setImmediate(resolve))
  expect(written).toEqual(['a', 'd'])
  keeper.save('d')
  expect(written).toHaveLength(2)
})
