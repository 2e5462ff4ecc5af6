import { expect, test } from 'bun:test'
import { acceptedCall, candidate, connectPair } from '@ringwire/testkit/flows'
import { soon } from '@ringwire/testkit/patience'
import { connectedCall } from '../support/extended-flows.ts'
import { hangUp, pairOn, stopAll } from './people.ts'
import { registerOutage } from './redis-outage.ts'
import { ask, becomesReady, becomesUnready, worldFor } from './world.ts'

const world = worldFor()

const signal = (name: 'SIGSTOP' | 'SIGCONT') => () => {
  process.kill(world().redis.pid, name)
}

/** Its connections stay, and nothing comes on them. */
registerOutage('stands still', world, { begin: signal('SIGSTOP'), end: signal('SIGCONT') })

test('[EXT3] [RES4] Redis stands still for 20 s: relays on one node go on all the time, and no log counts as lost', async () => {
  const { one, two } = world()
  const pair = await pairOn(one, one)
  const call = await connectedCall(pair)
  for (const client of [pair.caller, pair.callee]) {
    await client.request('webrtc.ice_candidate', candidate(call, 0))
  }
  signal('SIGSTOP')()
  const since = performance.now()
  const until = since + 20_000
  await becomesUnready('redis', one, two)
  const refused: number[] = []
  let n = 0
  while (performance.now() < until) {
    n++
    const sentAt = performance.now()
    const { code, data } = await ask(pair.caller, 'webrtc.ice_candidate', candidate(call, n))
    if (code === undefined) {
      expect(data).toMatchObject({ volatile: true })
      await pair.callee.next('webrtc.ice_candidate', (message) => message.data.candidate.candidate.endsWith(`:${n}`))
    } else refused.push(sentAt - since)
    await Bun.sleep(100)
  }
  // Nothing but what was on its way when the silence was found out.
  const foundOutMs = soon(5_000)
  expect(refused.filter((at) => at > foundOutMs)).toEqual([])
  signal('SIGCONT')()
  await becomesReady(one, two)
  const { data } = await ask(pair.caller, 'webrtc.ice_candidate', candidate(call, n + 1))
  expect(data).toEqual({ call_uuid: call, status: 'connected' })
  await hangUp(two, pair, call)
  const events = [...pair.caller.events(), ...pair.callee.events()]
  expect(events).not.toContain('session.reset')
  expect(n).toBeGreaterThan(50)
  stopAll(pair)
}, 240_000)

test('[EXT3] Redis stands still: what a peer on the same node sends a base client does not wait for it', async () => {
  const { one, two } = world()
  const base = await connectPair(one)
  const extended = await pairOn(one, one)
  const calls = [await acceptedCall(base), await connectedCall(extended)] as const
  const isFirst = (message: { data: { candidate: { candidate: string } } }) =>
    message.data.candidate.candidate.endsWith(':1')
  signal('SIGSTOP')()
  try {
    // The request that has to be saved goes first.
    extended.caller.send('webrtc.ice_candidate', candidate(calls[1], 1))
    base.caller.send('webrtc.ice_candidate', candidate(calls[0], 1))
    const toBase = base.callee.next('webrtc.ice_candidate').then(() => 'base')
    const toExtended = extended.callee.next('webrtc.ice_candidate', isFirst).then(() => 'extended')
    expect(await Promise.race([toBase, toExtended])).toBe('base')
    await toExtended
  } finally {
    signal('SIGCONT')()
  }
  await becomesReady(one, two)
  await hangUp(two, extended, calls[1])
  stopAll(extended)
  await Promise.all([base.caller.close(), base.callee.close()])
}, 60_000)
