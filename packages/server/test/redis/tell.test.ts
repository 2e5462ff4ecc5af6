import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Call, Place } from '../../src/call/call.ts'
import { accepted, ended, ringing } from '../../src/ports/call-store.fixture.ts'
import { resumeWindowMs, windowMs } from '../contracts/session-parts.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { createRedisSessions, type RedisSessions } from '../support/redis-sessions.ts'

const names = ['one', 'two', 'three'] as const
let server: RedisServer
let nodes: RedisSessions[] = []
const heard = new Map<string, Call[]>(names.map((name) => [name, []]))
beforeAll(async () => {
  server = await startRedis()
  nodes = names.map((node) =>
    createRedisSessions({
      ...{ url: server.url, node, windowMs, resumeWindowMs },

      onCall: (call) => void heard.get(node)?.push(call),
      onError: (error) => console.error(error),
    }),
  )
  await Promise.all(nodes.map((node) => node.start()))
})
afterAll(async () => {
  await Promise.all(nodes.map((node) => node.close()))
  await server.stop()
})

test('the other node of a call hears what was committed, whole, and its end; no third one does', async () => {
  const { call } = accepted(ringing())
  if (call.status !== 'accepted') throw new Error('unreachable')
  const at = (place: Place, node: string): Place => ({ ...place, node })
  const across: Call = {
    ...call,
    metadata: { text: 'a "quoted" line\nand ☎' },
    callerPlace: at(call.callerPlace, 'one'),
    calleePlace: at(call.calleePlace, 'two'),
  }
  const within: Call = { ...across, calleePlace: at(call.calleePlace, 'one') }
  const [one] = nodes
  one?.tell(across)
  one?.tell(within)
  const over = { ...ended(call).call, callerPlace: across.callerPlace, calleePlace: across.calleePlace } as Call
  one?.tell(over)
  // One after the other: once what the first has said is at the server, the others find it before their own.
  for (const node of nodes) await node.settled()
  expect(Object.fromEntries(heard)).toEqual({ one: [], two: [across, over], three: [] })
})
