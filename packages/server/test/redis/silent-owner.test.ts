import { afterEach, expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { Redis } from 'ioredis'
import { answeredCall } from '../../src/call/call.fixture.ts'
import { callKey } from '../../src/call/call.ts'
import { readBatch } from '../../src/cluster/batch.ts'
import type { Frame } from '../../src/cluster/frames.ts'
import { openReady, type Seen, stepsOf } from '../../src/ports/sessions.fixture.ts'
import { rowKey } from '../../src/stores/redis/keys.ts'
import { numbersOf, pushes, relays } from '../contracts/session-parts.ts'
import { holdUp, outcomeOf, type SessionNode, useSessionNodes } from './session-nodes.ts'

/** The owner of a session neither answers nor says that it lives: it may be dead, or stand still. */
/** Before the nodes are closed: one that stands still could not be. */
let goOn = () => {}
afterEach(() => goOn())
const { nodes, server } = await useSessionNodes()

/** A machine that stands still in the middle of a try makes the owner look alive: then the next try shows it. */
const tries = 3
/** A question to a node that is not silent waits longer, in ms. */
const silentAnswerMs = 4_000
const call = answeredCall()
const key = callKey(call)

/** What a node asks others for from now on. */
function recordFrames(node: SessionNode): Frame[] {
  const frames: Frame[] = []
  node.onScript = (name, args, send) => {
    if (name === 'post')
      for (const [, frame] of readBatch(Buffer.from(String(args[0]))).messages) if (frame !== null) frames.push(frame)
    return send()
  }
  return frames
}

async function silentOwner() {
  const url = await server.database()
  const one = await nodes.start(url)
  // The other store says that it lives.
  const two = await nodes.start(url, () => false)
  const kept = await openReady(one.sessions)
  const open = async () => {
    const seen = await openReady(one.sessions, { deviceId: 'phone' })
    await stepsOf(one.sessions).hold(seen.id, key, true)
    await relays(one.sessions, seen.id, key, [1, 2])
    const back = await openReady(two.sessions, { participant: seen.identity.participant, deviceId: 'phone' })
    return { seen, back }
  }
  const lost: { seen: Seen; back: Seen }[] = []
  for (let i = 0; i < 2 * tries; i++) lost.push(await open())
  await one.settled()
  const client = new Redis(url)
  const node = String(await client.hget(rowKey(kept.id), 'o'))
  client.disconnect()
  const frames = recordFrames(two)
  goOn = holdUp(one)
  const isSilent = async () => {
    const since = performance.now()
    const asked = Promise.resolve(two.sessions.holdsAny(kept.id)).catch(String)
    return String(await asked).endsWith('is silent') || performance.now() - since < silentAnswerMs
  }
  return { one, two, kept, lost, node, frames, isSilent }
}

test('[PLACE2] [PLACE4] a silent node is asked for nothing about a place that was lost', async () => {
  const { two, lost, node, frames, isSilent } = await silentOwner()
  const asked: Frame[][] = []
  for (let i = 0; i < tries; i++) {
    await until('it is silent', isSilent, 60_000)
    const [told, moved] = [lost[2 * i]!, lost[2 * i + 1]!]
    frames.length = 0
    expect(await two.sessions.wasClosed(told.seen.id, node)).toBe(false)
    expect(await stepsOf(two.sessions).hold(told.seen.id, key, true, false, 5, true)).toBe(true)
    for (const { seen, back } of [told, moved]) {
      expect(await two.sessions.move(key, seen.id, back.id, false, 6, false, true)).toBe(true)
      expect(numbersOf(back.socket)).toEqual([1, 2])
    }
    asked.push(frames.filter((frame) => [told, moved].some(({ seen }) => JSON.stringify(frame).includes(seen.id))))
    if (asked.at(-1)?.length === 0) break
  }
  expect(asked.at(-1)).toEqual([])
}, 240_000)

test('[PLACE2] what waits for a silent node looks for another owner when there is news of the call', async () => {
  const { two, kept, lost, frames, isSilent } = await silentOwner()
  const orders: string[][] = []
  for (let i = 0; i < tries; i++) {
    await until('it is silent', isSilent, 60_000)
    const { seen, back } = lost[i]!
    const order: string[] = []
    const isAsked = (about: string) => frames.some((frame) => JSON.stringify(frame).includes(about))
    frames.length = 0
    const source = { sessionId: 'sender', n: i + 1, after: undefined }
    const relay = { ...pushes.relay(key, 3), source, forPlace: true }
    const asks = [
      outcomeOf(() => two.sessions.holdsAny(kept.id)).then(() => order.push('question')),
      outcomeOf(() => two.sessions.append(seen.id, relay)).then((result) => order.push(`relay: ${result}`)),
      outcomeOf(() => stepsOf(two.sessions).hold(kept.id, key, true)).then((result) => order.push(`hold: ${result}`)),
    ]
    await until('it is asked', () => isAsked('holdsAny') && isAsked(seen.id) && isAsked('"apply"'))
    two.tell(call)
    expect(await two.sessions.move(key, seen.id, back.id, false, 6, false, true)).toBe(true)
    two.told(call)
    await Promise.all(asks)
    orders.push(order)
    if (order.at(-1) === 'question') break
  }
  expect(orders.at(-1)).toEqual(['hold: unknown', 'relay: elsewhere', 'question'])
}, 240_000)

/** A phone in a call lost its socket. */
async function lostPhone({ sessions }: SessionNode) {
  const seen = await openReady(sessions, { deviceId: 'phone', extended: false })
  await stepsOf(sessions).hold(seen.id, key, true)
  await sessions.detach(seen.id, seen.socket, false, 0)
  const again = { participant: seen.identity.participant, deviceId: 'phone', extended: false }
  return { seen, again }
}

test('[WS4] who comes back to a node that stood still hears what came to a session that another node took', async () => {
  const url = await server.database()
  const [one, two] = [await nodes.start(url), await nodes.start(url, () => true)]
  const kept = await openReady(one.sessions)
  const { seen, again } = await lostPhone(one)
  await one.settled()
  const { promise: goesOn, resolve } = Promise.withResolvers<void>()
  const { promise: looks, resolve: letLook } = Promise.withResolvers<void>()
  goOn = () => [resolve, letLook].forEach((each) => void each())
  one.onScript = (name, _args, send) => (name === 'renew' ? looks : goesOn).then(send)
  await until('it is dead', async () => (await two.sessions.liveOf(kept.identity.participant)).length === 0, 12_000)
  expect(await two.sessions.append(seen.id, pushes.final(key, 3, 7))).toBe('kept')
  // It goes on, and has yet to look at what it owned.
  one.onScript = (name, _args, send) => (name === 'renew' ? looks.then(send) : send())
  resolve()
  const back = await openReady(one.sessions, again)
  await one.sessions.collectFinals(back.identity)
  expect(numbersOf(back.socket)).toEqual([7])
}, 60_000)

test('[WS4] what came to a session of before while another one looked, and had read that nothing waits, is told', async () => {
  const url = await server.database()
  const [one, two] = [await nodes.start(url), await nodes.start(url)]
  const { seen, again } = await lostPhone(one)
  const back = await openReady(two.sessions, again)
  const { promise: hasRead, resolve: onRead } = Promise.withResolvers<void>()
  const { promise: isThere, resolve: goOnLooking } = Promise.withResolvers<void>()
  goOn = goOnLooking
  two.onScript = async (name, _args, send) => {
    const reply = await send()
    if (name !== 'rows') return reply
    onRead()
    return isThere.then(() => reply)
  }
  const looked = two.sessions.collectFinals(back.identity)
  await hasRead
  expect(await one.sessions.append(seen.id, pushes.final(key, 3, 7))).toBe('kept')
  goOnLooking()
  await looked
  expect(numbersOf(back.socket)).toEqual([7])
}, 60_000)
