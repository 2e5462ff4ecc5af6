import { afterAll, beforeAll, expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import { until as untilSo } from '@ringwire/testkit/patience'
import { Service } from '@ringwire/testkit/service'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { SharedStores } from '../../server/test/support/stores.ts'
import type { Call } from '../src/types.ts'
import { online, type Person, person, stateOf, talk } from './support/people.ts'
import { candidate } from './support/stage.ts'

/** The SDK while one of two nodes is taken out of service. */
let stores: SharedStores
beforeAll(async () => {
  stores = await SharedStores.start()
})
afterAll(() => stores?.dispose())

const drainMs = 4_000
/** How long whatever is in front of the nodes still sends new connections to the one that stops. */
const lagMs = 2_000

/** Candidates, one after another, until told to stop; gives how many. */
async function sendOn(call: Call, goesOn: () => boolean): Promise<number> {
  let sent = 0
  for (; goesOn(); sent++) {
    await call.sendCandidate(candidate(`candidate:${sent}`))
    await Bun.sleep(10)
  }
  return sent
}

function heardBy(call: Call): string[] {
  const heard: string[] = []
  call.on('candidate', (payload) => {
    if (payload !== null) heard.push(payload.candidate)
  })
  return heard
}

test('[CLOSE] [RES1] a node drains: everybody is recovered on the other one, and calls notice nothing', async () => {
  const env = { ...(await stores.next()), RINGWIRE_DRAIN_MS: String(drainMs), RINGWIRE_WS_RATE: 'off' }
  const one = await new Service({ ...env, RINGWIRE_NODE_ID: 'one' }).start()
  const two = await new Service({ ...env, RINGWIRE_NODE_ID: 'two' }).start()
  let front = one
  const network = await new TcpProxy(() => front.url).start()
  const here = (name: string, role: Person['role']) => person(two, someone(name), role, { url: network.wsUrl })
  const pairs = Array.from({ length: 8 }, () => ({
    caller: here('caller', 'customer'),
    callee: here('callee', 'agent'),
  }))
  const people = pairs.flatMap(({ caller, callee }) => [caller, callee])
  try {
    await Promise.all(people.map(online))
    const calls = await Promise.all(pairs.map(({ caller, callee }) => talk(caller, callee)))
    const heard = calls.map(({ out, in: incoming }) => [heardBy(incoming), heardBy(out)] as const)
    let goesOn = true
    const sending = calls.map(({ out, in: incoming }) =>
      Promise.all([sendOn(out, () => goesOn), sendOn(incoming, () => goesOn)]),
    )
    await untilSo('the nodes know each other', async () => {
      const rows = await stores.postgres.query('SELECT beats::int FROM nodes', env.DATABASE_URL)
      return rows.length === 2 && rows.every(({ beats }) => beats >= 3)
    })
    const ended = one.terminate()
    await untilSo('the first is sent away', () => people.some(({ client }) => client.state.name !== 'online'))
    setTimeout(() => {
      front = two
    }, lagMs)
    expect(await ended).toBe(0)

    await untilSo('all are online', () => people.every(({ client }) => client.state.name === 'online'))
    goesOn = false
    const sent = await Promise.all(sending)
    for (const [i, [byCallee, byCaller]] of heard.entries()) {
      const [ofCaller = 0, ofCallee = 0] = sent[i] ?? []
      await untilSo('all has come', () => byCallee.length >= ofCaller && byCaller.length >= ofCallee)
      expect(byCallee).toEqual(Array.from({ length: ofCaller }, (_, n) => `candidate:${n}`))
      expect(byCaller).toEqual(Array.from({ length: ofCallee }, (_, n) => `candidate:${n}`))
    }
    for (const { client, tokens, states } of people) {
      expect(client.state).toMatchObject({ name: 'online', recovered: true })
      expect(tokens).toEqual(['first'])
      const [why] = states.flatMap((state) => (state.name === 'waiting' ? [state.why] : []))
      expect(why).toMatchObject({ code: 'socket_closed', closeCode: 1012, reason: 'restart, jitter_ms=100' })
    }
    // Some came back too early, and were sent away by the node that drains.
    const attempts = people.map(({ states }) => states.filter(({ name }) => name === 'waiting').length)
    expect(Math.max(...attempts)).toBeGreaterThan(1)
    await Promise.all(
      calls.map(async ({ out, in: incoming }) => {
        await incoming.end()
        expect(await stateOf(out, 'over')).toMatchObject({ status: 'ended', reason: 'hangup' })
      }),
    )
  } finally {
    for (const { client } of people) client.close()
    await network.stop()
    await Promise.all([one.dispose(), two.dispose()])
  }
}, 240_000)
