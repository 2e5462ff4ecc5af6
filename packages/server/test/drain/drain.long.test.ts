import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Client } from '@ringwire/testkit/client'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import { acceptedCall, candidate, connectPair, someone } from '@ringwire/testkit/flows'
import { soon, until } from '@ringwire/testkit/patience'
import { exchange, RawSocket } from '@ringwire/testkit/raw-socket'
import { upgradeHead } from '@ringwire/testkit/raw-websocket'
import { Service } from '@ringwire/testkit/service'
import { type Link, TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { check } from '../support/extended-check.ts'
import { about, answeredCall, connectExtended, type ExtendedPair } from '../support/extended-flows.ts'
import { startRedis } from '../support/redis.ts'
import { inviteOf, request } from '../support/sessions.ts'
import { SharedStores } from '../support/stores.ts'
import { expectAwayOnlyIfLate } from '../support/told-back.ts'

/** One of two nodes stops: its clients go to the other one, one by one. */
const drainMs = 5_000
/** A node that said for a second what it had found before would say so for longer. */
const atOnceMs = 500
/** In which the sockets are closed. */
const spreadMs = 0.8 * drainMs

let stores: SharedStores
beforeAll(async () => {
  stores = await SharedStores.start()
})
afterAll(() => stores?.dispose())

interface Nodes {
  /** The node that stops. */
  readonly one: Service
  readonly two: Service
}

async function withNodes(body: (nodes: Nodes) => Promise<void>, env: Record<string, string> = {}): Promise<void> {
  const shared = { ...(await stores.next()), RINGWIRE_DRAIN_MS: String(drainMs), RINGWIRE_WS_RATE: 'off', ...env }
  const one = new Service({ ...shared, RINGWIRE_NODE_ID: 'one' })
  const two = new Service({ ...shared, RINGWIRE_NODE_ID: 'two' })
  try {
    await Promise.all([one.start(), two.start()])
    await beatsOn(one)
    await body({ one, two })
    expect(one.log + two.log).not.toContain('"level":"error"')
  } finally {
    await Promise.all([one.dispose(), two.dispose()])
  }
}

/** Until the nodes that live have looked at each other twice. */
async function beatsOn({ env }: Service): Promise<void> {
  const beats = async () => {
    const rows = await stores.postgres.query('SELECT name, beats::int FROM nodes WHERE NOT has_left', env.DATABASE_URL)
    return new Map<string, number>(rows.map(({ name, beats }) => [name, beats]))
  }
  const before = await beats()
  await until('heartbeats', async () =>
    [...(await beats())].every(([name, count]) => count >= (before.get(name) ?? 0) + 2),
  )
}

function person(service: Service, name: string, role: string): Promise<ExtendedClient> {
  return connectExtended(service, { user_id: someone(name), role }, { persistent: true })
}

/** A call between a client of each of these nodes. */
async function callBetween(caller: Service, callee: Service): Promise<ExtendedPair & { callUuid: string }> {
  const [callerId, calleeId] = [someone('caller'), someone('callee')]
  const pair = {
    callerId,
    calleeId,
    caller: await connectExtended(caller, { user_id: callerId, role: 'customer' }, { persistent: true }),
    callee: await connectExtended(callee, { user_id: calleeId, role: 'agent' }, { persistent: true }),
  }
  return { ...pair, callUuid: await answeredCall(pair) }
}

/** Relays one after another, each acknowledged, until told to stop. */
async function relayOn(client: ExtendedClient, callUuid: string, goesOn: () => boolean): Promise<number> {
  let n = 0
  for (; goesOn(); n++) await client.request('webrtc.ice_candidate', candidate(callUuid, n))
  return n
}

/** Invites and cancels, again when the invite is answered, until the socket is closed: something is always under way. */
async function inviteOn(client: Client): Promise<void> {
  const gone = client.closed.then(() => 'gone' as const)
  for (;;) {
    const callUuid = crypto.randomUUID()
    client.send('call.invite', inviteOf(someone('callee'), { call_uuid: callUuid }))
    const invited = client.next('call.invited', ({ data }) => data.call_uuid === callUuid).catch(() => undefined)
    if ((await Promise.race([invited, gone])) === 'gone') return
    client.send('call.cancel', { call_uuid: callUuid })
  }
}

/** When its socket closes, on the monotonic clock, and how. */
async function closeOf(client: { readonly closed: Promise<{ code: number; reason: string }> }) {
  const { code, reason } = await client.closed
  return { code, reason, at: performance.now() }
}

describe('a node that stops while another one serves', () => {
  test(
    '[CLOSE] [RES1] [PEER1] every session is recovered on the other node, nothing is lost, calls and relays go on',
    () =>
      withNodes(async ({ one, two }) => {
        const calls = await Promise.all([
          ...Array.from({ length: 4 }, () => callBetween(one, one)),
          ...Array.from({ length: 4 }, () => callBetween(one, two)),
          ...Array.from({ length: 4 }, () => callBetween(two, one)),
        ])
        const idle = await Promise.all(Array.from({ length: 20 }, () => person(one, 'idle', 'agent')))
        const talking = calls.flatMap(({ caller, callee }) => [caller, callee])
        const leaving = talking.filter(({ url }) => url === one.url)
        let goesOn = true
        const relays = calls.flatMap(({ caller, callee, callUuid }) => [
          relayOn(caller, callUuid, () => goesOn),
          relayOn(callee, callUuid, () => goesOn),
        ])
        const closes = { idle: Promise.all(idle.map(closeOf)), talking: Promise.all(leaving.map(closeOf)) }
        // From now on whatever is in front of the nodes sends everybody to the other one.
        for (const client of [...leaving, ...idle]) client.url = two.url
        const begin = performance.now()
        const code = await one.terminate()
        const ended = performance.now()
        expect(code).toBe(0)
        expect(ended - begin).toBeLessThan(soon(drainMs))

        const [idleCloses, talkingCloses] = [await closes.idle, await closes.talking]
        const all = [...idleCloses, ...talkingCloses]
        expect(new Set(all.map(({ code, reason }) => `${code} ${reason}`))).toEqual(
          new Set(['1012 restart, jitter_ms=100']),
        )
        const lastIdle = Math.max(...idleCloses.map(({ at }) => at))
        const firstTalking = Math.min(...talkingCloses.map(({ at }) => at))
        expect(lastIdle - firstTalking).toBeLessThan(soon(100))
        // 36 moments in 4 s: that they all fall into one half of it has a chance of less than one in a billion.
        const times = all.map(({ at }) => at)
        expect(Math.max(...times) - Math.min(...times)).toBeGreaterThan(spreadMs / 2)

        await Promise.all([...leaving, ...idle].map((client) => client.settle()))
        const backAt = Date.now()
        for (const { caller, callee, callUuid } of calls)
          for (const client of [caller, callee]) expectAwayOnlyIfLate(client, callUuid, 100, backAt)
        goesOn = false
        const sent = await Promise.all(relays)
        expect(Math.min(...sent)).toBeGreaterThan(20)
        await Promise.all(
          calls.map(async ({ caller, callee, callUuid }) => {
            await callee.request('call.end', { call_uuid: callUuid })
            await caller.next('call.ended', about(callUuid))
          }),
        )
        await Promise.all([...talking, ...idle].map((client) => client.settle()))
        const { findings, counts } = check([...talking, ...idle].map(({ trace }) => trace))
        expect(findings).toEqual({
          lost: [],
          doubled: [],
          outOfOrder: [],
          seq: [],
          replies: [],
          order: [],
          notRecovered: [],
        })
        expect(counts.resumes).toBe(leaving.length + idle.length)
        for (const client of [...talking, ...idle]) client.stop()
      }),
    240_000,
  )

  test(
    '[CLOSE] base sockets get 1012; what was asked before is done and answered first',
    () =>
      withNodes(async ({ one, two }) => {
        const { caller, callee, callerId, calleeId } = await connectPair(one)
        const callUuid = await acceptedCall({ caller, callee, calleeId })
        const userIds = Array.from({ length: 8 }, () => someone('busy'))
        const busy = await Promise.all(userIds.map((user_id) => one.connect({ user_id })))
        for (const client of busy) void inviteOn(client)
        const exited = one.terminate()
        const closes = await Promise.all([caller, callee, ...busy].map(closeOf))
        expect(new Set(closes.map(({ code }) => code))).toEqual(new Set([1012]))
        for (const [i, client] of busy.entries()) {
          const replied = new Set(client.all.filter(({ event }) => event === 'call.invited').map(uuidOf))
          const token = await two.token({ user_id: userIds[i] ?? '' })
          const { data } = await two.history(token, '?limit=100')
          expect(data.length).toBeGreaterThan(0)
          expect(data.filter(({ call_uuid: id }: { call_uuid: string }) => !replied.has(id))).toEqual([])
        }
        expect(await exited).toBe(0)
        // The call goes on at the other node.
        const again = await two.connect({ user_id: callerId })
        await two.connect({ user_id: calleeId, role: 'agent' })
        expect(await request(again, 'call.end', { call_uuid: callUuid })).toBeUndefined()
      }),
    240_000,
  )

  test(
    '[HEALTH1] [CLOSE] at once: /readyz 503, a browser gets 1013, other upgrades 503; a second signal ends it',
    () =>
      withNodes(async ({ one }) => {
        // So many that some are sure to be there when the second signal comes: the last one ends the node.
        const clients = await Promise.all(Array.from({ length: 20 }, () => one.connect({ user_id: someone('one') })))
        const token = await one.token({ user_id: someone('late') })
        // A connection that is there already: what is measured is the service. A try that takes over 1 s counts as none.
        await until('it is ready', async () => (await fetch(`${one.url}/readyz`)).status === 200)
        const exited = one.terminate()
        const begin = performance.now()
        let ready = await fetch(`${one.url}/readyz`)
        // The signal may arrive after a later request.
        const isInTime = () => performance.now() - begin < soon(atOnceMs)
        while (ready.status === 200 && isInTime()) ready = await fetch(`${one.url}/readyz`)
        const heardBy = performance.now()
        expect(heardBy - begin).toBeLessThan(soon(atOnceMs))
        expect([ready.status, await ready.json()]).toMatchObject([503, { ok: false, service_ready: false }])
        const alive = await fetch(`${one.url}/healthz`)
        expect([alive.status, await alive.json()]).toMatchObject([200, { ok: true, service_ready: false }])

        const headers = [`Sec-WebSocket-Protocol: jwt, ${token}`]
        const browser = new Client({ url: one.url, headers: [...headers, 'Origin: https://shop.example'] })
        expect((await browser.next('call.error')).error.code).toBe('SERVICE_DRAINING')
        expect(await browser.closed).toEqual({ code: 1013, reason: 'draining, try again' })
        expect((await browser.status).headers.get('sec-websocket-protocol')).toBe('jwt')
        const other = await exchange(new RawSocket(one.url), upgradeHead(headers))
        expect([other.status, JSON.parse(other.body).error.code]).toEqual([503, 'SERVICE_DRAINING'])
        expect(other.head).toMatch(/retry-after: \d+/i)

        // Signals of one Ctrl-C come together: only one that comes later is a second one.
        await Bun.sleep(Math.max(0, 330 - (performance.now() - heardBy)))
        one.signal('SIGTERM')
        expect(await exited).toBe(143)
        expect(performance.now() - begin).toBeLessThan(soon(spreadMs))
        await Promise.all(clients.map(({ closed }) => closed))
      }),
    240_000,
  )
})

test(
  '[CLOSE] with no other node all are closed at once',
  () =>
    withNodes(async ({ one, two }) => {
      expect(await two.terminate()).toBe(0)
      const clients = await Promise.all(Array.from({ length: 10 }, () => one.connect({ user_id: someone('one') })))
      // By the next heartbeat it is known.
      await beatsOn(one)
      const begin = performance.now()
      const exited = one.terminate()
      for (const { code, reason, at } of await Promise.all(clients.map(closeOf))) {
        expect([code, reason]).toEqual([1012, 'restart, jitter_ms=20'])
        expect(at - begin).toBeLessThan(soon(500))
      }
      expect(await exited).toBe(0)
    }),
  240_000,
)

describe('a node that stops while Redis does not serve it', () => {
  const windowMs = 1_000
  const inShort = { RINGWIRE_DRAIN_MS: String(windowMs) }

  /** People in calls on the node that stops: what it takes until it has ended, in ms. */
  async function stopInCalls({ one, two }: Nodes, harm: () => Promise<void> | void): Promise<number> {
    const { caller, callee, calleeId } = await connectPair(one)
    await acceptedCall({ caller, callee, calleeId })
    const calls = [await callBetween(one, one), await callBetween(one, two)]
    const closes = Promise.all([caller, callee].map(closeOf))
    await harm()
    const begin = performance.now()
    expect(await one.terminate()).toBe(0)
    const took = performance.now() - begin
    for (const { code, reason } of await closes) expect([code, reason]).toEqual([1012, 'restart, jitter_ms=100'])
    for (const pair of calls) for (const client of [pair.caller, pair.callee]) client.stop()
    return took
  }

  for (const isKnown of [false, true]) {
    test(`[CLOSE] it stands still, ${isKnown ? 'and that is known' : 'unnoticed so far'}: the node ends soon after its window`, async () => {
      const redis = await startRedis()
      const harm = (one: Service) => async () => {
        process.kill(redis.pid, 'SIGSTOP')
        // It has said what is wrong: the earlier connections are given up.
        if (isKnown) await until('that is known', () => one.log.includes('"message":"Redis"'))
      }
      try {
        await withNodes(
          async (nodes) => expect(await stopInCalls(nodes, harm(nodes.one))).toBeLessThan(soon(windowMs + 10_000)),
          { ...inShort, REDIS_URL: redis.url },
        )
      } finally {
        await redis.stop()
      }
    }, 240_000)
  }

  test('[CLOSE] it takes its time for everything: who is still on the way in is not waited for until it is out again', async () => {
    const redis = await startRedis()
    const proxy = await new TcpProxy(redis.url).start()
    const slow = (link: Link) => link.delay(1_000)
    try {
      await withNodes(
        async (nodes) => {
          const token = await nodes.one.token({ user_id: someone('late') })
          const took = await stopInCalls(nodes, async () => {
            // Each command is answered well in time; a client that comes in needs one after another.
            proxy.onLink = slow
            for (const link of proxy.open) slow(link)
            await new Client({ url: nodes.one.url, token }).status
          })
          expect(took).toBeLessThan(soon(windowMs + 20_000))
          // It was not out when the time was over.
          await until('it has said so', () => nodes.one.log.includes('some sockets could not leave in time'))
        },
        { ...inShort, REDIS_URL: `redis://${proxy.host}` },
      )
    } finally {
      proxy.stop()
      await redis.stop()
    }
  }, 240_000)
})

const uuidOf = ({ data }: { data: { call_uuid: string } }) => data.call_uuid
