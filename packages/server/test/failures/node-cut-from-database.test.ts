import { expect, test } from 'bun:test'
import { candidate } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { Service } from '@ringwire/testkit/service'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { finish } from '../scenarios/calls/composition.ts'
import { connectedCall } from '../support/extended-flows.ts'
import { hangUp, numbersTo, pairOn, stopAll } from './people.ts'
import { ask, becomesReady, storedCalls, worldFor } from './world.ts'

/** Others take a node for dead whose heartbeats stand still for 5 s, if it is gone from Redis too; they look every second. */
const judgedMs = 7_000
/** A lost clock that began then would run out while nobody looks. */
const lostMs = 1_000

const links = new Map<string, TcpProxy>()
const world = worldFor({
  env: { RINGWIRE_PEER_LOST_MS: String(lostMs), RINGWIRE_CALLER_LOST_MS: String(lostMs) },
  async databaseUrlOf(url, node) {
    const link = await new TcpProxy(url).start()
    links.set(node, link)
    const through = new URL(url)
    through.port = String(link.port)
    return through.href
  },
  async atEnd() {
    await Promise.all([...links.values()].map((link) => link.stop()))
  },
})

test('[END3] [PLACE3] nodes that are cut from PostgreSQL alone, refused or in silence, are not dead: their people keep places and calls, and relays arrive', async () => {
  const { one, two, databaseUrl, postgres } = world()
  const three = await new Service({ ...two.env, DATABASE_URL: databaseUrl, RINGWIRE_NODE_ID: 'three' }).start()
  const pairs = await Promise.all([pairOn(one, one), pairOn(two, two), pairOn(one, three), pairOn(three, two)])
  const calls = await Promise.all(pairs.map(connectedCall))
  const relay = async (n: number) => {
    for (const [index, { caller, callee }] of pairs.entries()) {
      for (const client of [caller, callee]) {
        expect((await ask(client, 'webrtc.ice_candidate', candidate(calls[index] ?? '', n))).event).toBe('call.ack')
      }
    }
  }
  await relay(0)
  const before = await storedCalls(world(), ...calls)

  links.get('one')?.stall()
  links.get('two')?.refuse('close')
  await until(
    'the third node has judged them',
    async () => {
      const silent = await postgres.query(
        `SELECT FROM nodes WHERE name !~ '^three' AND clock_timestamp() - seen_at > interval '${judgedMs} ms'`,
        databaseUrl,
      )
      return silent.length === 2
    },
    2 * judgedMs,
  )
  await relay(1)
  expect(await storedCalls(world(), ...calls)).toEqual(before)
  for (const link of links.values()) link.mend()
  await becomesReady(one, two, three)
  await relay(2)
  expect(await storedCalls(world(), ...calls)).toEqual(before)
  for (const [index, pair] of pairs.entries()) {
    // An acknowledged relay is in the log of its receiver, who may be on another node.
    await pair.callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate.endsWith(':2'))
    expect(numbersTo(pair.callee, calls[index] ?? '')).toEqual([0, 1, 2])
    await hangUp(one, pair, calls[index] ?? '')
  }
  expect(three.log).not.toContain('a node is gone')
  stopAll(...pairs)
  await finish(three)
}, 240_000)
