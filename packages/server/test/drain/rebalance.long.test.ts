import { afterAll, beforeAll, expect, test } from 'bun:test'
import { isDeepStrictEqual } from 'node:util'
import type { ExtendedClient, ExtendedClientOptions } from '@ringwire/testkit/extended-client'
import { candidate, someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { Service } from '@ringwire/testkit/service'
import { metricsOf } from '../admin/observed.ts'
import { check } from '../support/extended-check.ts'
import { about, answeredCall, connectExtended } from '../support/extended-flows.ts'
import { inviteOf } from '../support/sessions.ts'
import { SharedStores } from '../support/stores.ts'

let stores: SharedStores
beforeAll(async () => {
  stores = await SharedStores.start()
})
afterAll(() => stores?.dispose())

/** Nodes on stores of their own. */
async function startNodes(ids: readonly string[], env: Record<string, string> = {}): Promise<readonly Service[]> {
  const shared = { ...(await stores.next()), RINGWIRE_WS_RATE: 'off', RINGWIRE_ADMIN_PORT: '0', ...env }
  const nodes = ids.map((id) => new Service({ ...shared, RINGWIRE_NODE_ID: id }))
  await Promise.all(nodes.map((node) => node.start()))
  return nodes
}

/** How many sockets each node says that it has, by its id. */
async function socketsOf([node]: readonly Service[]): Promise<Record<string, number | null>> {
  const rows = await stores.postgres.query(
    "SELECT split_part(name, '~', 1) AS id, sockets FROM nodes WHERE NOT has_left",
    node?.env.DATABASE_URL,
  )
  return Object.fromEntries(rows.map(({ id, sockets }) => [id, sockets]))
}

function idlePeople(node: Service, count: number, options: Partial<ExtendedClientOptions>): Promise<ExtendedClient[]> {
  const connect = () => connectExtended(node, { user_id: someone('idle'), role: 'agent' }, options)
  return Promise.all(Array.from({ length: count }, connect))
}

/** A caller and a callee on one node, and their answered call. */
async function callOn(node: Service, options: Partial<ExtendedClientOptions>) {
  const [callerId, calleeId] = [someone('caller'), someone('callee')]
  const caller = await connectExtended(node, { user_id: callerId, role: 'customer' }, options)
  const callee = await connectExtended(node, { user_id: calleeId, role: 'agent' }, options)
  const pair = { callerId, calleeId, caller, callee }
  return { ...pair, callUuid: await answeredCall(pair) }
}

/** The codes and reasons with which the sockets of a client were closed. */
const closesOf = ({ entries }: ExtendedClient) =>
  entries.flatMap((entry) => (entry.kind === 'closed' ? [`${entry.code} ${entry.reason}`] : []))
const wasMoved = (client: ExtendedClient) => closesOf(client).some((close) => close.startsWith('1012'))

test('[BAL1] clients that are all on one node spread, no call is touched, nothing is lost; without the setting nobody moves', async () => {
  const on = { RINGWIRE_REBALANCE_PER_SECOND: '100', RINGWIRE_MAX_RINGING: '1000' }
  const nodes = await startNodes(['one', 'two', 'three'], on)
  const still = await startNodes(['still', 'empty'])
  const [one, , three] = nodes as [Service, Service, Service]
  try {
    let turn = 0
    const nextUrl = () => nodes[turn++ % nodes.length]?.url ?? ''
    const options = { persistent: true, nextUrl }
    const staying = await idlePeople(still[0] as Service, 60, { persistent: true })
    const idle = await idlePeople(one, 90, options)
    const base = await Promise.all(Array.from({ length: 4 }, () => one.connect({ user_id: someone('base') })))
    const calls = await Promise.all([callOn(one, options), callOn(one, options)])
    const inCalls = calls.flatMap(({ caller, callee }) => [caller, callee])

    // Each client is called while it is on its way, and the call that goes on relays a candidate.
    const calling = await connectExtended(
      three,
      { user_id: someone('calling'), role: 'customer' },
      { persistent: true },
    )
    const talking = calls[0]
    const onTheWay: Promise<void>[] = []
    const ring = async (callee: ExtendedClient, n: number) => {
      const callUuid = crypto.randomUUID()
      await calling.request('call.invite', inviteOf(callee.trace.userId, { call_uuid: callUuid }))
      await talking.caller.request('webrtc.ice_candidate', candidate(talking.callUuid, n))
      await callee.next('call.ringing', about(callUuid))
      await calling.request('call.cancel', { call_uuid: callUuid })
      await callee.next('call.cancelled', about(callUuid))
    }
    for (const client of idle) void client.closed.then(() => onTheWay.push(ring(client, onTheWay.length)))

    const total = idle.length + base.length + inCalls.length + 1
    let counts: readonly number[] = []
    const isSpread = async () => {
      counts = Object.values(await socketsOf(nodes)).map((count) => count ?? 0)
      const sum = counts.reduce((sum, count) => sum + count, 0)
      return sum === total && Math.max(...counts) <= (total / nodes.length) * 1.1
    }
    await until(() => `${total} sockets are spread; they are on the nodes: ${counts}`, isSpread, 240_000)
    await Promise.all(onTheWay)
    expect(onTheWay.length).toBeGreaterThan(total / 2)

    expect(inCalls.filter(wasMoved)).toEqual([])
    // Each is answered on the socket that it had.
    for (const client of base) await client.settle()
    const closes = idle.flatMap(closesOf).filter((close) => close.startsWith('1012'))
    expect(new Set(closes)).toEqual(new Set(['1012 restart, jitter_ms=100']))
    for (const { callUuid, caller, callee } of calls) {
      await callee.request('call.end', { call_uuid: callUuid })
      await caller.next('call.ended', about(callUuid))
    }
    const everybody = [...idle, ...inCalls, calling]
    await Promise.all(everybody.map((client) => client.settle()))
    const { findings } = check(everybody.map(({ trace }) => trace))
    const nothing = { lost: [], doubled: [], outOfOrder: [], seq: [], replies: [], order: [], notRecovered: [] }
    expect(findings).toEqual(nothing)

    const sample = 'ringwire_closes_total{code="1012",cause="rebalance"}'
    expect((await metricsOf(one)).get(sample)).toBeGreaterThan(total / 2)
    await until('the log says so', () => one.log.includes('idle clients are sent to nodes with fewer sockets'))

    // For as long, and longer, these were all on one node.
    expect(staying.filter(wasMoved)).toEqual([])
    const stay = async () => isDeepStrictEqual(await socketsOf(still), { still: staying.length, empty: 0 })
    await until('they all stay', stay)
    for (const client of [...everybody, ...staying]) client.stop()
    expect(nodes.map(({ log }) => log).join('')).not.toContain('"level":"error"')
  } finally {
    await Promise.all([...nodes, ...still].map((node) => node.dispose()))
  }
}, 1_200_000)
