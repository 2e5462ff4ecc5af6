/**
 * Appends through the adapter, local delivery included, beside the bare client's EVALSHA of a trivial script.
 * `bun packages/server/test/redis/append.measure.ts`
 */

import { openReady } from '../../src/ports/sessions.fixture.ts'
import { connect } from '../../src/stores/redis/connect.ts'
import { pushes, resumeWindowMs, windowMs } from '../contracts/session-parts.ts'
import { startRedis } from '../support/redis.ts'
import { createRedisSessions } from '../support/redis-sessions.ts'

const seconds = 3

/** How often a second, with `inFlight` in flight. */
async function rate(inFlight: number, once: (i: number) => Promise<unknown>): Promise<number> {
  let done = 0
  const end = performance.now() + seconds * 1_000
  const loop = async (i: number) => {
    while (performance.now() < end) {
      await once(i)
      done++
    }
  }
  await Promise.all(Array.from({ length: inFlight }, (_, i) => loop(i)))
  return Math.round(done / seconds)
}

const server = await startRedis()
const options = { url: server.url, windowMs, resumeWindowMs, onError: console.error }
const [node, other] = ['one', 'two'].map((name) => createRedisSessions({ ...options, node: name }))
await Promise.all([node!.start(), other!.start()])
const client = connect(server.url)
await new Promise((resolve) => client.once('ready', resolve))
const text = 'x'.repeat(380)
const sha = String(await client.call('SCRIPT', 'LOAD', 'return 1'))
const all = await Promise.all(Array.from({ length: 100 }, () => openReady(node!.sessions, { extended: false })))
for (const seen of all) Object.assign(seen.socket, { send() {}, pushed() {} })
const push = { ...pushes.relay('c', 1), text: `{"event":"webrtc.ice_candidate","data":{"pad":"${text}"}}` }

for (let round = 0; round < 3; round++) {
  for (const inFlight of [1, 100]) {
    const bare = await rate(inFlight, () => client.evalsha(sha, 1, 'rw:{abc}:x', push.text))
    const local = await rate(inFlight, (i) => Promise.resolve(node!.sessions.append(all[i]!.id, push)))
    for (const { id } of all) await node!.sessions.prove(id, Number.MAX_SAFE_INTEGER)
    const remote = await rate(inFlight, (i) => Promise.resolve(other!.sessions.append(all[i]!.id, push)))
    const ratio = (n: number) => `${n}/s (${(n / bare).toFixed(2)})`
    console.log(`${inFlight} in flight: bare EVALSHA ${bare}/s, append local ${ratio(local)}, remote ${ratio(remote)}`)
  }
}
await Promise.all([node!.close(), other!.close()])
client.disconnect()
await server.stop()
