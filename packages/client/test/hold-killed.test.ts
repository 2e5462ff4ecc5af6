import { afterAll, beforeAll, expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { becomesReady, worldFor } from '../../server/test/failures/world.ts'
import { backOnline, online, type Person, person, talk, until } from './support/people.ts'

/* The SDK on two nodes with PostgreSQL and Redis, of which one is killed while calls are on hold. */

const world = worldFor()

type Node = 'one' | 'two'
const layouts: readonly [Node, Node][] = [
  ['one', 'two'],
  ['two', 'one'],
  ['one', 'one'],
]

/** What clients of the first node connect to. */
let front: TcpProxy
let isKilled = false
beforeAll(async () => {
  front = await new TcpProxy(() => (isKilled ? world().two.url : world().one.url)).start()
}, 240_000)
afterAll(() => front?.stop())

test('[HOLD1] [RES1] a node is killed while calls are on hold: each side still shows it, and the calls go on after that', async () => {
  const { one, two } = world()
  const onOne: Person[] = []
  const people: Person[] = []
  const open = (at: Node, role: Person['role']) => {
    const it = person(two, someone(role), role, at === 'one' ? { url: front.wsUrl } : {})
    if (at === 'one') onOne.push(it)
    people.push(it)
    return it
  }
  // The caller holds the call.
  const pairs = layouts.map(([holder, peer]) => {
    return { nodes: `${holder}, ${peer}`, caller: open(holder, 'customer'), callee: open(peer, 'agent') }
  })
  await Promise.all(people.map(online))
  const calls = await Promise.all(
    pairs.map(async ({ nodes, caller, callee }) => {
      const { out, in: incoming } = await talk(caller, callee)
      await out.connected()
      await incoming.sendMedia({ audio: true, video: false, screen: false })
      await out.sendMedia({ audio: true, video: false, screen: false })
      await out.hold()
      await until(`${nodes}: the peer hears of the hold`, callee.client, () => incoming.peerState.held)
      return { nodes, caller, callee, out, incoming }
    }),
  )

  const back = onOne.map(backOnline)
  await one.kill()
  isKilled = true
  await Promise.all(back)

  for (const { nodes, caller, callee, out, incoming } of calls) {
    await until(`${nodes}: nobody is away`, caller.client, () => out.peerState.away === null)
    await until(`${nodes}: nobody is away`, callee.client, () => incoming.peerState.away === null)
    await until(`${nodes}: it is still on hold`, callee.client, () => incoming.peerState.held)
    expect([nodes, out.held, out.state.name, out.peerState.held]).toEqual([nodes, true, 'connected', false])
    expect([nodes, incoming.held, incoming.state.name]).toEqual([nodes, false, 'connected'])
    await out.resume()
    await until(`${nodes}: it goes on`, callee.client, () => !incoming.peerState.held)
    expect([nodes, out.held, incoming.peerState.media]).toEqual([
      nodes,
      false,
      { audio: true, video: false, screen: false },
    ])
    // And the other way round.
    await incoming.hold()
    await until(`${nodes}: the callee holds it`, caller.client, () => out.peerState.held)
    await incoming.resume()
    await until(`${nodes}: the callee goes on`, caller.client, () => !out.peerState.held)
  }
  for (const { client } of people) client.close()
  await one.start()
  await becomesReady(one)
}, 240_000)
