import { expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import { connectExtendedPair } from '../../support/extended-flows.ts'
import { Networks } from '../../support/network.ts'
import type { NodePair } from '../../support/node-pair.ts'
import { connectFour } from '../../support/sessions.ts'
import { compositions, finish } from './composition.ts'

/** What all clients have in common. */
interface Connected {
  readonly closed: Promise<unknown>
  settle(): Promise<void>
}

/** On which node of a pair a client is, once the second one has ended. */
function nodeOf(client: Connected): Promise<'first' | 'second'> {
  return Promise.race([client.closed.then(() => 'second' as const), client.settle().then(() => 'first' as const)])
}

const { start } = compositions.nodes()

test('of two clients of a pair of nodes each is on a node of its own, however they connect', async () => {
  const pair = (await start()) as NodePair
  const networks = new Networks()
  try {
    const wish = { user_id: someone('agent'), role: 'agent' }
    const token = await pair.token(wish)
    const first = await pair.connect(wish)
    // A request between them takes nobody's turn.
    await pair.history(token)
    const second = await pair.connect(wish)
    const [open, openToo] = [pair.open(token), pair.open(token)]
    for (const client of [open, openToo]) await client.next('auth.ok')
    const four = await connectFour(pair)
    const { caller, callee } = await connectExtendedPair(pair)
    const [near, far] = [await networks.connect(pair, wish), await networks.connect(pair, wish)]
    await pair.second.terminate()
    for (const [of, clients] of Object.entries({
      'one after another': [first, second],
      'with a token': [open, openToo],
      'tabs of a caller, at once': [four.caller, four.callerTab],
      'tabs of a callee, at once': [four.callee, four.calleeTab],
      'extended ones, at once': [caller, callee],
      'each behind a network': [near.client, far.client],
    })) {
      expect({ of, nodes: await Promise.all(clients.map(nodeOf)) }).toEqual({ of, nodes: ['first', 'second'] })
    }
  } finally {
    networks.stop()
    await finish(pair)
  }
})
