import { afterEach, beforeEach, expect, test } from 'bun:test'
import { StoreError } from '../../src/ports/store-error.ts'
import {
  comeBack,
  createSocket,
  identityOf,
  numbersOf,
  openReady,
  pushes,
  resumeOf,
  upTo,
} from '../contracts/session-parts.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { createSessionNodes, loseFirstReply, outcomeOf, type SessionNode, sendAll, until } from './session-nodes.ts'

/** A node makes good what a store that was away did not hear, or did not answer. */
const nodes = createSessionNodes()
let server: RedisServer
let node: SessionNode
let other: SessionNode
beforeEach(async () => {
  server = await startRedis()
  node = await nodes.start(server.url)
  other = await nodes.start(server.url)
})
afterEach(async () => {
  await nodes.closeAll()
  await server.stop()
})

test('[RES1] a socket that the store knows of and nobody holds is taken back', async () => {
  const { sessions } = node
  const seen = await openReady(sessions)
  seen.upstream.handled = 4
  await sessions.detach(seen.id, seen.socket, false, 0)

  loseFirstReply(node, 'resume')
  const resumed = await outcomeOf(() => sessions.resume(resumeOf(seen, 0), seen.identity, createSocket(), 0))
  expect(resumed).toBe('unknown')
  const identity = identityOf()
  loseFirstReply(node, 'open')
  expect(await outcomeOf(() => sessions.open(identity, createSocket(), 0))).toBe('unknown')
  const live = async () => [
    await other.sessions.liveOf(seen.identity.participant),
    await other.sessions.liveOf(identity.participant),
  ]
  expect(await live()).toEqual([[seen.id], [identity.sessionId]])

  await until('both are known to have no socket', async () => String(await live()) === ',')
  // Nobody has heard of the one; the other one's client comes back, with what it has asked for before.
  expect(await other.sessions.append(identity.sessionId, pushes.ringing('c', 1, 1))).toBe('gone')
  const back = await comeBack(other.sessions, seen, 0)
  expect(back?.upstream.handled).toBe(4)
})

test('[EXT4] a socket that is told of late is told of with what took effect on it since', async () => {
  const { sessions } = node
  const seen = await openReady(sessions)
  seen.upstream.handled = 46
  node.onScript = async (name, _args, send) => {
    if (name === 'detach') throw new StoreError('unavailable', 'the connection was lost')
    return send()
  }
  await sessions.detach(seen.id, seen.socket, false, 0)
  // What was under way when it closed.
  seen.upstream.handled = 52
  const retired = await other.sessions.sinkToReplace(seen.id, seen.identity)
  await retired?.retire()
  node.onScript = sendAll
  await until(
    'its socket is known to be gone',
    async () => (await other.sessions.liveOf(seen.identity.participant)).length === 0,
  )
  const back = await other.sessions.resume(resumeOf(seen, 0), seen.identity, createSocket(), 0, retired)
  expect(back?.upstream.handled).toBe(52)
})

test('[PLACE4] a part of the store that is away keeps nobody from being told of what is in the others', async () => {
  const { sessions } = node
  const [bad, good, called] = [await openReady(sessions), await openReady(sessions), await openReady(sessions)]
  await sessions.hold(called.id, 'c', true)
  let isAllAway = true
  node.onScript = async (name, args, send) => {
    if (name === 'detach' && (isAllAway || args.includes(bad.id))) throw new StoreError('unavailable', 'CLUSTERDOWN')
    return send()
  }
  for (const { id, socket } of [bad, good]) await sessions.detach(id, socket, false, 0)
  isAllAway = false
  const before = node.ran.length
  const live = await Promise.all([bad, good].map(({ identity }) => other.sessions.liveOf(identity.participant)))
  expect(live).toEqual([[bad.id], [good.id]])
  await until(
    'it is known to be gone',
    async () => (await other.sessions.liveOf(good.identity.participant)).length === 0,
  )
  await until('heads are compared', () => node.ran.slice(before).includes('head'))
  expect(await other.sessions.liveOf(bad.identity.participant)).toEqual([bad.id])
  node.onScript = sendAll
})

test('[ORD2] a session that cannot be asked for keeps no other from what it missed', async () => {
  const { sessions } = node
  const seen = await Promise.all(upTo(101).map(() => openReady(sessions)))
  const [first, last] = [seen[0]!, seen[100]!]
  loseFirstReply(node, 'append')
  expect(await outcomeOf(() => sessions.append(last.id, pushes.relay('c', 1)))).toBe('unknown')
  node.onScript = async (name, args, send) => {
    if (name === 'head' && args.includes(first.id)) throw new StoreError('unavailable', 'CLUSTERDOWN')
    return send()
  }
  expect(await outcomeOf(() => node.look())).toBe('unavailable')
  await node.settled()
  expect(numbersOf(last.socket)).toEqual([1])
})

test('[EXT3] [EXT4] a relay past the log is for who can be told so: anybody else asks again, and it would come twice', async () => {
  const { sessions } = node
  const [sender, receiver] = [await openReady(sessions), await openReady(sessions)]
  node.onScript = async (name, _args, send) => {
    if (name === 'append') throw new StoreError('unavailable', 'away')
    return send()
  }
  const relay = (n: number) =>
    outcomeOf(() => sessions.append(receiver.id, { ...pushes.relay('c', n), source: { sessionId: sender.id, n } }))
  expect(await relay(1)).toBe('volatile')
  // A base session asks once.
  expect(await outcomeOf(() => sessions.append(receiver.id, pushes.relay('c', 2)))).toBe('volatile')
  Object.assign(sender.socket, { isClosed: true })
  expect(await relay(3)).toBe('unavailable')
  await sessions.detach(sender.id, sender.socket, false, 0)
  expect(await relay(4)).toBe('unavailable')
  expect(numbersOf(receiver.socket)).toEqual([1, 2])
})

test('[EXT4] a notice that is asked for again, because its node died before it could say so, is told once', async () => {
  const seen = await openReady(node.sessions)
  const alerting = (n: number) => ({ ...pushes.notice('c', undefined, n), source: { sessionId: 'of-the-callee', n } })
  expect(await node.sessions.append(seen.id, alerting(4))).toBe('sent')
  expect(await other.sessions.append(seen.id, alerting(4))).toBe('dropped')
  expect(await other.sessions.append(seen.id, alerting(5))).toBe('sent')
  await node.settled()
  expect(numbersOf(seen.socket)).toEqual([4, 5])
})
