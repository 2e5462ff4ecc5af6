import { expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { createSocket, identityOf, openReady, type Seen, stepsOf } from '../../src/ports/sessions.fixture.ts'
import type { Sink } from '../../src/ports/sessions.ts'
import { StoreError } from '../../src/ports/store-error.ts'
import { logKey, rowKey } from '../../src/stores/redis/keys.ts'
import { comeBack, numbersOf, pushes, relays, seqsOf, upTo } from '../contracts/session-parts.ts'
import { holdUp, outcomeOf, type SessionNode, sendAll, useSessionNodes, writeRow } from './session-nodes.ts'

/** Sessions whose owner others took for dead, or that another node has by now. */
const { nodes, server, start } = await useSessionNodes()

/** A session with a place, whose owner does not know yet that another node has it. */
async function taken() {
  const { started, client } = await start(2)
  const [one, two] = started as [SessionNode, SessionNode]
  const seen = await openReady(one.sessions)
  await stepsOf(one.sessions).hold(seen.id, 'c', true)
  await one.settled()
  await writeRow(client, seen.id, { o: '' })
  expect(await two.sessions.append(seen.id, pushes.relay('c', 1))).toBe('kept')
  await two.settled()
  return { one, two, seen, client }
}

/** A session whose client has proven to have three relays. */
async function hasProvenThree(one: SessionNode): Promise<Seen> {
  const seen = await openReady(one.sessions)
  await relays(one.sessions, seen.id, 'c', [1, 2, 3])
  await one.sessions.prove(seen.id, 3)
  await one.settled()
  return seen
}

test('[RES2] a copy that this version cannot read is as good as none: its client begins anew, and nobody is kept waiting', async () => {
  const { started, client } = await start(2)
  const [one, two] = started as [SessionNode, SessionNode]
  for (const copy of ['{"shape":99}', 'not JSON']) {
    const seen = await openReady(one.sessions)
    await one.settled()
    await writeRow(client, seen.id, { o: '', f: '9', c: copy })
    expect(await comeBack(two.sessions, seen, 0)).toBeUndefined()
    expect(await two.sessions.append(seen.id, pushes.relay('c', 1))).toBe('gone')
    expect(await client.exists(rowKey(seen.id))).toBe(0)
  }
  client.disconnect()
})

test('[RES1] several nodes that take over a session at once: one gets it, and what all of them say arrives there', async () => {
  const { started, client } = await start(4)
  const [one, ...others] = started as [SessionNode, ...SessionNode[]]
  for (let round = 0; round < 20; round++) {
    const seen = await openReady(one.sessions)
    await stepsOf(one.sessions).hold(seen.id, 'c', true)
    await one.sessions.detach(seen.id, seen.socket, false, 0)
    await one.settled()
    // As a node that stops leaves it.
    await writeRow(client, seen.id, { o: '', f: '9' })
    const results = await Promise.all(
      others.map(({ sessions }, i) => sessions.append(seen.id, pushes.relay('c', round * 10 + i))),
    )
    expect(results).toEqual(['kept', 'kept', 'kept'])
    expect(await client.hget(rowKey(seen.id), 'f')).toBe('10')
    const back = await comeBack(others[round % 3]!.sessions, seen, 0)
    expect(back && numbersOf(back.socket).sort()).toEqual(others.map((_, i) => round * 10 + i))
  }
  client.disconnect()
}, 60_000)

test('[EXT3] a relay from another node is told when it is saved, for it comes again until it is; one of this node may be told before', async () => {
  const { started } = await start(2)
  const [one, two] = started as [SessionNode, SessionNode]
  const savedFirst: boolean[] = []
  const socket = {
    ...createSocket(),
    pushed: (_: number, __?: string, isEvent = false) => void savedFirst.push(isEvent),
  }
  const identity = identityOf()
  await one.sessions.open(identity, socket, 0)
  await one.sessions.ready(identity.sessionId)
  expect(await one.sessions.append(identity.sessionId, pushes.relay('c', 1))).toBe('sent')
  expect(await two.sessions.append(identity.sessionId, pushes.relay('c', 2))).toBe('sent')
  expect(savedFirst).toEqual([false, true])
})

test('[RES1] a socket that is closed by the time that its node finds the session takes it from nobody', async () => {
  const { started } = await start(2)
  const [one, two] = started as [SessionNode, SessionNode]
  const seen = await openReady(one.sessions)
  let isClosed = false
  const late: Sink = {
    ...createSocket(),
    get isClosed() {
      return isClosed
    },
  }
  two.onScript = async (name, _args, send) => {
    const reply = await send()
    if (name === 'row') isClosed = true
    return reply
  }
  expect(await outcomeOf(() => two.sessions.sinkToReplace(seen.id, seen.identity, late))).toBe('unavailable')
  expect(seen.socket.retirements).toBe(0)
  expect(one.sessions.heldHere(seen.id)).toBeDefined()
})

test('[RES1] a socket of before that comes to another node takes the session from nobody who has received more', async () => {
  const { started, client } = await start(2)
  const [one, two] = started as [SessionNode, SessionNode]
  const seen = await hasProvenThree(one)
  const late = createSocket()
  expect(await outcomeOf(() => two.sessions.sinkToReplace(seen.id, seen.identity, late, 2))).toBe('unavailable')
  expect([late.closes, seen.socket.closes, seen.socket.retirements]).toEqual([[4409], [], 0])
  expect(await two.sessions.append(seen.id, pushes.relay('c', 4))).toBe('sent')
  const newer = createSocket()
  expect(await two.sessions.sinkToReplace(seen.id, seen.identity, newer, 3)).toBeUndefined()
  expect(seen.socket.retirements).toBe(1)
  client.disconnect()
})

for (const at of ['the same node', 'another node']) {
  test(`[RES1] who comes to ${at} while a socket of before waits for a sign of life is the newer one`, async () => {
    const { started, client } = await start(2)
    const [one, two] = started as [SessionNode, SessionNode]
    const seen = await hasProvenThree(one)
    const asked = Promise.withResolvers<void>()
    const answer = Promise.withResolvers<boolean>()
    seen.socket.probe = () => {
      asked.resolve()
      return answer.promise
    }
    const resume = (at: SessionNode, seq: number, socket: Sink) =>
      at.sessions.resume({ sessionId: seen.id, epoch: seen.epoch, seq }, seen.identity, socket, 0)
    const late = createSocket()
    const there = at === 'another node' ? two : one
    const comesLate = outcomeOf(async () => {
      await there.sessions.sinkToReplace(seen.id, seen.identity, late, 2)
      return resume(there, 2, late)
    })
    await asked.promise
    const real = createSocket()
    await (await one.sessions.sinkToReplace(seen.id, seen.identity, real, 3))?.retire()
    expect(await resume(one, 3, real)).toBeDefined()
    await one.sessions.ready(seen.id, real)
    answer.resolve(false)
    expect(await comesLate).toBe('unavailable')
    expect([late.closes, real.closes]).toEqual([[4409], []])
    await relays(two.sessions, seen.id, 'c', [4])
    await one.settled()
    expect(numbersOf(real)).toEqual([4])
    client.disconnect()
  })
}

test('[ORD3] a node that could not say that it lives says so before it takes anybody in', async () => {
  const { started, client } = await start(1)
  const [one] = started as [SessionNode]
  let isHeld = true
  one.onScript = (name, _args, send) =>
    name === 'nodes' && isHeld ? Promise.reject(new StoreError('unavailable', 'just now')) : send()
  const since = performance.now()
  // It counts as dead after 5 s, and says so again where it did not for 3 s.
  await until('it has not said so for long enough', () => performance.now() - since > 3_100)
  expect(await outcomeOf(() => openReady(one.sessions))).toBe('unavailable')
  isHeld = false
  const from = one.ran.length
  await openReady(one.sessions)
  expect(one.ran.slice(from).filter((name) => name === 'nodes' || name === 'save')[0]).toBe('nodes')
  client.disconnect()
}, 60_000)

test('[ORD1] [CLOSE] who was taken for dead writes nothing over what its successor has, and closes its sockets', async () => {
  const { started, client } = await start(2)
  const [one, two] = started as [SessionNode, SessionNode]
  const seen = await openReady(one.sessions)
  await stepsOf(one.sessions).hold(seen.id, 'c', true)
  await relays(one.sessions, seen.id, 'c', [1])
  await one.settled()
  // Its row names nobody, as if it had died; it does not know.
  await writeRow(client, seen.id, { o: '' })
  expect(await two.sessions.append(seen.id, pushes.relay('c', 2))).toBe('kept')
  await two.settled()
  await relays(one.sessions, seen.id, 'c', [3])
  await one.settled()
  await until('its socket is closed', () => seen.socket.closes.length > 0)
  expect(seen.socket.closes).toEqual([1013])
  expect(one.sessions.heldHere(seen.id)).toBeUndefined()
  const back = await comeBack(two.sessions, seen, 1)
  await two.settled()
  expect(back && numbersOf(back.socket)).toEqual([2])
  client.disconnect()
})

test('[RES2] a node that lost a session to another one, and does not know it, refuses no resume by what it had', async () => {
  const { one, two, seen, client } = await taken()
  const back = await comeBack(two.sessions, seen, 0)
  expect(back && numbersOf(back.socket)).toEqual([1])
  await two.sessions.detach(seen.id, back?.socket ?? createSocket(), false, 0)
  await two.settled()
  expect(await two.sessions.append(seen.id, pushes.relay('c', 2))).toBe('kept')
  // The first node never sent what this client has seen.
  const again = await comeBack(one.sessions, seen, 1)
  expect(again && numbersOf(again.socket)).toEqual([2])
  client.disconnect()
})

test('[INV4] [RES1] a node that stood still, and goes on, owns at once what comes to it, though others have yet to find that it lives', async () => {
  const url = await server.database()
  const one = await nodes.start(url)
  // What it last saw of the first node, in both stores, was that it was dead.
  const two = await nodes.start(url, () => true)
  let isOld = false
  two.onScript = async (name, _args, send) => {
    const reply = await send()
    // It lacks the first one until something asks for what is so now.
    return name === 'nodes' && isOld ? reply.slice(0, 2) : reply
  }
  isOld = true
  await two.look()
  const seen = await openReady(one.sessions)
  await stepsOf(one.sessions).hold(seen.id, 'c', true)
  await one.settled()
  isOld = false
  expect(await two.sessions.append(seen.id, pushes.relay('c', 1))).toBe('sent')
  isOld = true
  await two.look()
  isOld = false
  // A ring looks for connected sessions.
  expect(await two.sessions.liveOf(seen.identity.participant)).toEqual([seen.id])
  await one.settled()
  expect([numbersOf(seen.socket), seen.socket.closes]).toEqual([[1], []])
})

test('[EXT4] [ORD2] what came on a socket of a session that another node has by now, and has not begun, has no effect', async () => {
  const { started, client } = await start(2)
  const [one, two] = started as [SessionNode, SessionNode]
  const [open, lost] = [await openReady(one.sessions), await openReady(one.sessions)]
  await one.settled()
  lost.socket.isBusy = true
  await one.sessions.detach(lost.id, lost.socket, false, 0)
  for (const { id } of [open, lost]) {
    // Its row names nobody, as if its owner had died; the owner does not know.
    await writeRow(client, id, { o: '' })
    await two.sessions.append(id, pushes.relay('c', 1))
  }
  await two.settled()
  for (const { id } of [open, lost]) await relays(one.sessions, id, 'c', [2])
  await one.settled()
  await until('both are let go', () => [open, lost].every(({ socket }) => socket.retirements > 0))
  expect([open, lost].map(({ socket }) => socket.retirements)).toEqual([1, 1])
  client.disconnect()
})

test('[EXT3] [ORD3] what was told to a session that another node has by now was told to nobody', async () => {
  const { started, client } = await start(3)
  const [one, two, three] = started as [SessionNode, SessionNode, SessionNode]
  const seen = await openReady(one.sessions)
  await stepsOf(one.sessions).hold(seen.id, 'c', true)
  // It remembers where the session is.
  await three.sessions.append(seen.id, pushes.relay('c', 1))
  await writeRow(client, seen.id, { o: '' })
  expect(await two.sessions.append(seen.id, pushes.relay('c', 2))).toBe('kept')
  await two.settled()
  // A deliverer elsewhere that goes by what it remembers, and one where it was.
  expect(await three.sessions.append(seen.id, pushes.state('c', 3, 3))).toBe('kept')
  expect(one.sessions.heldHere(seen.id)).toBeUndefined()
  expect(await one.sessions.append(seen.id, pushes.final('c', 4, 4))).toBe('kept')
  const back = await comeBack(two.sessions, seen, 1)
  await two.settled()
  expect(back && numbersOf(back.socket)).toEqual([2, 3, 4])
  client.disconnect()
})

test('[WS4] an end for a session without a socket, told at a node that lost it, is told at the node that has it', async () => {
  const { started, client } = await start(3)
  const [one, two, three] = started as [SessionNode, SessionNode, SessionNode]
  const dead = await openReady(one.sessions, { extended: false })
  await stepsOf(one.sessions).hold(dead.id, 'c', true)
  // It remembers where the session is.
  await three.sessions.append(dead.id, pushes.relay('c', 1))
  await one.sessions.detach(dead.id, dead.socket, false, 0)
  await one.settled()
  await writeRow(client, dead.id, { o: '' })
  expect(await two.sessions.append(dead.id, pushes.relay('c', 2))).toBe('kept')
  await two.settled()
  expect(await three.sessions.append(dead.id, pushes.final('c', 3, 3))).toBe('kept')
  const back = await openReady(two.sessions, { ...dead.identity, extended: false }, 1)
  await two.sessions.collectFinals(back.identity)
  expect(numbersOf(back.socket)).toEqual([3])
  client.disconnect()
})

test('[EXT3] what was told to a session while it turned out to be another node’s is not saved for whoever waits then', async () => {
  const { one, seen, client } = await taken()
  const other = await openReady(one.sessions)
  let asked: Promise<void> | undefined
  one.onScript = async (name, _args, send) => {
    const reply = await send()
    if (name !== 'save') return reply
    one.onScript = sendAll
    // It gets more before the node hears of the refusal, and somebody waits for the save after that.
    await one.sessions.append(seen.id, pushes.relay('c', 3))
    asked = one.sessions.append(other.id, pushes.relay('d', 1)) as unknown as Promise<void>
    return reply
  }
  await one.sessions.append(seen.id, pushes.relay('c', 2))
  expect(await outcomeOf(async () => one.save())).toBe('unknown')
  await asked
  expect(await outcomeOf(async () => one.save())).toBe('unknown')
  await one.sessions.append(other.id, pushes.relay('d', 2))
  expect(await outcomeOf(async () => one.save())).toBeUndefined()
  client.disconnect()
})

for (const isInFirst of [true, false]) {
  const how = isInFirst ? 'where another one has to be written again' : 'where it is written along with that'
  test(`[EXT3] whoever waits for the save of that hears of it also ${how}`, async () => {
    const { one, seen, client } = await taken()
    const other = await openReady(one.sessions)
    await one.save()
    let outcome: unknown
    one.onScript = async (name, _args, send) => {
      const reply = await send()
      if (name !== 'save') return reply
      one.onScript = sendAll
      await one.sessions.append(seen.id, pushes.relay('c', 3))
      outcome = outcomeOf(async () => one.save())
      return reply
    }
    await client.del(rowKey(other.id))
    for (const { id } of isInFirst ? [seen, other] : [other]) await one.sessions.append(id, pushes.relay('c', 2))
    expect(await outcomeOf(async () => one.save())).toBe('unknown')
    expect(await outcome).toBe('unknown')
    await one.sessions.append(other.id, pushes.relay('d', 2))
    expect(await outcomeOf(async () => one.save())).toBeUndefined()
    client.disconnect()
  })
}

test('[EXT3] whoever waits for the save of that hears of it also where there is nothing else to save', async () => {
  const { one, seen, client } = await taken()
  let outcome: unknown
  one.onScript = async (name, _args, send) => {
    const reply = await send()
    if (name !== 'row') return reply
    one.onScript = sendAll
    // Somebody else saves at the end of this turn, and the waiting code asks after that.
    await one.sessions.append(seen.id, pushes.relay('c', 2))
    setImmediate(() => {
      outcome = outcomeOf(async () => one.save())
    })
    return reply
  }
  expect(await one.sessions.hasMoved(seen.id, seen.socket)).toBe(true)
  await until('it was asked', () => outcome)
  expect(await outcome).toBe('unknown')
  client.disconnect()
})

test('[EXT3] [EXT4] what nobody knows to be saved is asked again at another node, though it was answered', async () => {
  const { started, client } = await start(2)
  const [one, two] = started as [SessionNode, SessionNode]
  const seen = await openReady(one.sessions)
  // Of the last relay it is not known yet, when its sender is saved, whether its receiver is another node's by now.
  Object.assign(seen.upstream, { handled: 3, final: 2 })
  for (const n of [1, 2, 3]) seen.upstream.replies.push({ n, text: `reply ${n}` })
  await relays(one.sessions, seen.id, 'c', [1])
  one.sessions.renew(seen.id, 1)
  await one.settled()
  await writeRow(client, seen.id, { o: '', f: '9' })
  const back = await comeBack(two.sessions, seen, 1)
  expect(back?.upstream).toMatchObject({ handled: 2, replies: [{ n: 1 }, { n: 2 }] })
  client.disconnect()
})

test('[EXT3] a save says that it was refused to whoever waits for it, and to nobody after', async () => {
  const { started, client } = await start(2)
  const [one, two] = started as [SessionNode, SessionNode]
  const [seen, other] = [await openReady(one.sessions), await openReady(one.sessions)]
  await one.settled()
  await writeRow(client, seen.id, { o: '' })
  await two.sessions.append(seen.id, pushes.relay('c', 1))
  await two.settled()
  await relays(one.sessions, other.id, 'd', [1])
  await relays(one.sessions, seen.id, 'c', [2])
  expect(await outcomeOf(async () => one.save())).toBe('unknown')
  await relays(one.sessions, other.id, 'd', [2])
  expect(await outcomeOf(async () => one.save())).toBeUndefined()
  client.disconnect()
})

test('[ORD3] an end that was told to a session of before is told before its place is released', async () => {
  const { one, two, seen, client } = await taken()
  const tell = async () => {
    await one.sessions.append(seen.id, pushes.final('c', 2, 2))
    await one.sessions.confirm('c')
    await stepsOf(one.sessions).release(seen.id, 'c')
  }
  expect(await outcomeOf(tell)).toBe('unknown')
  expect(await outcomeOf(tell)).toBeUndefined()
  const back = await comeBack(two.sessions, seen, 0)
  await two.settled()
  expect(back && numbersOf(back.socket)).toEqual([1, 2])
  client.disconnect()
})

test('[RING1] a ring goes to where its session is now, and not to a node that has just died', async () => {
  const { started, client } = await start(3)
  const [one, two, three] = started as [SessionNode, SessionNode, SessionNode]
  const seen = await openReady(one.sessions)
  // It remembers where the session was.
  await three.sessions.append(seen.id, pushes.relay('c', 1))
  await one.settled()
  await writeRow(client, seen.id, { o: '', f: '9' })
  const back = await comeBack(two.sessions, seen, 1)
  // It does not answer any more, and nobody knows yet why.
  const { promise: isOver, resolve: end } = Promise.withResolvers<void>()
  one.onScript = (_name, _args, send) => isOver.then(send)
  expect(await outcomeOf(() => three.sessions.appendLive(seen.identity.participant, pushes.ringing('d', 1, 2)))).toBe(1)
  await two.settled()
  expect(back && numbersOf(back.socket)).toEqual([2])
  one.onScript = sendAll
  end()
  client.disconnect()
})

test('[ORD3] what another node was faster to take over is told there', async () => {
  const { started, client } = await start(3)
  const [one, two, three] = started as [SessionNode, SessionNode, SessionNode]
  const dead = await openReady(one.sessions)
  const { participant } = dead.identity
  await one.sessions.append(dead.id, pushes.ringing('c', 1, 1))
  await one.settled()
  await writeRow(client, dead.id, { o: '', f: '9' })
  two.onScript = async (name, _args, send) => {
    if (name === 'claim') await three.sessions.append(dead.id, pushes.relay('d', 2))
    return send()
  }
  await two.sessions.appendRung(participant, pushes.final('c', 3, 3), [])
  const back = await comeBack(three.sessions, dead, 1)
  await three.settled()
  expect(back && numbersOf(back.socket)).toEqual([2, 3])
  client.disconnect()
})

test('[ORD3] a step of a call is not told as long as one of its sessions turned out to be elsewhere since', async () => {
  const { one, seen, client } = await taken()
  await one.sessions.append(seen.id, pushes.state('c', 2, 2))
  // The save of the turn says so, and nobody waits for that save.
  await outcomeOf(async () => one.save())
  expect(await outcomeOf(async () => one.sessions.confirm('c'))).toBe('unknown')
  expect(await one.sessions.append(seen.id, pushes.state('c', 2, 2))).toBe('kept')
  expect(await outcomeOf(async () => one.sessions.confirm('c'))).toBeUndefined()
  client.disconnect()
})

test('[WS4] the same where its owner died: its device may have come back before anybody noticed', async () => {
  const { started, client } = await start(3)
  const [one, two, three] = started as [SessionNode, SessionNode, SessionNode]
  const dead = await openReady(one.sessions, { extended: false })
  const { participant } = dead.identity
  await one.sessions.append(dead.id, pushes.ringing('c', 1, 1))
  await one.settled()
  await writeRow(client, dead.id, { o: '', f: '9' })
  const back = await openReady(two.sessions, { participant, extended: false }, 1_000)
  await two.sessions.collectFinals(back.identity)
  await three.sessions.sweep(2_000)
  await three.sessions.appendRung(participant, pushes.final('c', 2, 2), [])
  await two.settled()
  expect(numbersOf(back.socket)).toEqual([2])
  client.disconnect()
})

test('[RES1] a client of a node that was cut off has seen more than was saved: it goes on after that, and misses nothing', async () => {
  const { started, client } = await start(2)
  const [one, two] = started as [SessionNode, SessionNode]
  const seen = await openReady(one.sessions)
  await stepsOf(one.sessions).hold(seen.id, 'c', true)
  await relays(one.sessions, seen.id, 'c', [1, 2])
  await one.settled()
  one.onScript = () => Promise.reject(new StoreError('unavailable', 'cut off'))
  await one.sessions.append(seen.id, pushes.relay('c', 3))
  expect(await outcomeOf(async () => one.save())).toBe('unavailable')
  // From now on every push but a relay has to wait: nobody else would know of it.
  expect(await outcomeOf(() => one.sessions.append(seen.id, pushes.state('c', 2, 9)))).toBe('unavailable')
  expect(await outcomeOf(() => one.sessions.appendRung(seen.identity.participant, pushes.final('c', 3, 9), []))).toBe(
    'unavailable',
  )
  expect(await one.sessions.append(seen.id, pushes.relay('c', 4))).toBe('volatile')
  expect(seqsOf(seen.socket)).toEqual([1, 2, 3, 4])
  await writeRow(client, seen.id, { o: '', f: '9' })
  await two.sessions.append(seen.id, pushes.relay('c', 5))
  const back = await comeBack(two.sessions, seen, 4)
  await relays(two.sessions, seen.id, 'c', [6])
  await two.settled()
  expect(back && numbersOf(back.socket)).toEqual([5, 6])
  expect(back && seqsOf(back.socket)).toEqual([5, 6])
  one.onScript = sendAll
  client.disconnect()
})

test('[RES2] a copy without its log is not taken for whole', async () => {
  const { started, client } = await start(2)
  const [one, two] = started as [SessionNode, SessionNode]
  const seen = await openReady(one.sessions)
  await relays(one.sessions, seen.id, 'c', upTo(3))
  await one.sessions.detach(seen.id, seen.socket, false, 0)
  await one.settled()
  await writeRow(client, seen.id, { o: '', f: '9' })
  await client.del(logKey(seen.id))
  expect(await comeBack(two.sessions, seen, 3)).toBeUndefined()
  client.disconnect()
})

test('[PLACE2] a silent node keeps nobody waiting for a place that was lost, and loses no session whose place was not', async () => {
  const url = await server.database()
  const one = await nodes.start(url)
  // The other store says that it lives.
  const two = await nodes.start(url, () => false)
  const [lost, kept] = [await openReady(one.sessions, { deviceId: 'phone' }), await openReady(one.sessions)]
  for (const { id } of [lost, kept]) {
    await stepsOf(one.sessions).hold(id, 'c', true)
    await relays(one.sessions, id, 'c', [1, 2])
  }
  await one.settled()
  const { participant } = lost.identity
  const back = await openReady(two.sessions, { participant, deviceId: 'phone' })
  const other = await openReady(two.sessions, { participant: kept.identity.participant })
  const goOn = holdUp(one)
  // As long as it may answer, it gets requests.
  expect(await two.sessions.move('c', lost.id, back.id, false, 5, false, true)).toBe(true)
  expect(numbersOf(back.socket)).toEqual([1, 2])
  expect(await two.sessions.append(back.id, pushes.relay('c', 3))).toBe('sent')
  expect(await outcomeOf(() => two.sessions.move('c', kept.id, other.id, false, 5))).toBeString()
  // It only stood still.
  goOn()
  const isTold = () => two.sessions.append(kept.id, pushes.relay('c', 4))
  await until('it says again that it lives', async () => (await outcomeOf(isTold)) === 'sent')
  // The next save of what it lost is refused.
  await outcomeOf(() => one.sessions.append(lost.id, pushes.relay('c', 5)))
  await until('it knows what it lost', () => one.sessions.heldHere(lost.id) === undefined)
  expect(one.sessions.heldHere(kept.id)?.sessionId).toBe(kept.id)
}, 60_000)
