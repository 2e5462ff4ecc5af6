import { Client } from '@ringwire/testkit/client'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import { candidate, someone } from '@ringwire/testkit/flows'
import { Service } from '@ringwire/testkit/service'
import { connectExtended } from '../support/extended-flows.ts'
import { Postgres } from '../support/postgres.ts'
import { startRedis } from '../support/redis.ts'
import { inviteOf } from '../support/sessions.ts'

/**
 * How long a client waits for its peer after kill -9 of its node: from the kill to the first relay that its peer sent after
 * it. The client reconnects at once to the other node. Its peer has its socket there, and sends a candidate every 20 ms.
 * `npx bun packages/server/test/redis/killed.measure.ts [ROUNDS]`
 */
const rounds = Number(process.argv[2] ?? 20)
const relayEveryMs = 20
/** The nodes have to serve for this time before one finds at once that the other is dead, in ms. */
const settleMs = 8_500
const longestMs = 30_000

const [postgres, redis] = await Promise.all([Postgres.start(), startRedis()])
const databaseUrl = await postgres.database()
const nodeOf = (id: string) =>
  new Service({
    DATABASE_URL: databaseUrl,
    REDIS_URL: redis.url,
    RINGWIRE_JWT_SECRETS: `test:${'A'.repeat(43)}`,
    RINGWIRE_NODE_ID: id,
    RINGWIRE_WS_RATE: 'off',
  })
const one = nodeOf('one')
const two = nodeOf('two')

/** Either kind of client, as this measurement needs it. */
interface Party {
  readonly next: (event: string) => Promise<unknown>
  readonly send: (event: string, data: object) => void
  readonly seen: () => readonly { readonly event: string; readonly data: { candidate?: { candidate: string } } }[]
  comeBack(url: string): Promise<void>
  stop(): void
}

async function baseParty(userId: string): Promise<Party> {
  const token = await one.token({ user_id: userId, role: 'agent', device_id: `of-${userId}` })
  let client = new Client({ url: one.url, token })
  await client.next('auth.ok')
  return {
    next: (event) => client.next(event),
    send: (event, data) => client.send(event, data),
    seen: () => client.all,
    async comeBack(url) {
      for (;;) {
        client = new Client({ url, token })
        const isIn = await Promise.race([client.next('auth.ok').then(() => true), client.closed.then(() => false)])
        if (isIn) return
      }
    },
    stop: () => void client.close(),
  }
}

async function extendedParty(userId: string): Promise<Party> {
  const wish = { user_id: userId, role: 'agent', device_id: `of-${userId}` }
  const client: ExtendedClient = await connectExtended(one, wish)
  return {
    next: (event) => client.next(event),
    send: (event, data) => void client.request(event, data).catch(() => {}),
    seen: () => client.all as never,
    async comeBack(url) {
      client.url = url
      await client.connect()
    },
    stop: () => client.stop(),
  }
}

async function round(open: (userId: string) => Promise<Party>): Promise<number> {
  const calleeId = someone('callee')
  const callerId = someone('caller')
  const caller = await connectExtended(two, { user_id: callerId, role: 'customer', device_id: `of-${callerId}` })
  const callee = await open(calleeId)
  const call = crypto.randomUUID()
  await caller.request('call.invite', inviteOf(calleeId, { call_uuid: call }))
  await callee.next('call.ringing')
  callee.send('call.accept', { call_uuid: call })
  await caller.next('call.accepted')
  callee.send('call.connected', { call_uuid: call })
  await caller.next('call.status')

  let n = 0
  const relaying = setInterval(() => {
    caller.request('webrtc.ice_candidate', candidate(call, n++)).catch(() => {})
  }, relayEveryMs)
  await Bun.sleep(200)
  const killedAt = performance.now()
  await one.kill()
  const first = n
  await callee.comeBack(two.url)
  const isAfter = ({ event, data }: ReturnType<Party['seen']>[number]) =>
    event === 'webrtc.ice_candidate' && Number(data.candidate?.candidate.split(':')[1]) >= first
  while (!callee.seen().some(isAfter) && performance.now() - killedAt < longestMs) await Bun.sleep(2)
  const took = performance.now() - killedAt
  clearInterval(relaying)
  caller.stop()
  callee.stop()
  await one.start()
  await Bun.sleep(settleMs)
  return took
}

const at = (sorted: readonly number[], share: number) =>
  Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0)

try {
  await Promise.all([one.start(), two.start()])
  await Bun.sleep(settleMs)
  for (const [kind, open] of [
    ['base', baseParty],
    ['extended', extendedParty],
  ] as const) {
    const all: number[] = []
    for (let i = 0; i < rounds; i++) all.push(await round(open))
    const sorted = all.toSorted((a, b) => a - b)
    const [p50, p99, most] = [at(sorted, 0.5), at(sorted, 0.99), at(sorted, 1)]
    console.log(`${kind}: p50 ${p50} ms, p99 ${p99} ms, at most ${most} ms (${all.map(Math.round).join(' ')})`)
  }
} finally {
  await Promise.all([one.dispose(), two.dispose()])
  await Promise.all([postgres.dispose(), redis.stop()])
}
process.exit(0)
