import { expect, test } from 'bun:test'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import { candidate } from '@ringwire/testkit/flows'
import { SQL } from 'bun'
import { connectedCall, type ExtendedPair } from '../support/extended-flows.ts'
import { inviteOf } from '../support/sessions.ts'
import { historyOf, pairOn, stopAll } from './people.ts'
import { outageEnv, registerDatabaseOutage } from './postgres-outage.ts'
import { insist, toldOf, type World, worldFor } from './world.ts'

const world = worldFor({ env: outageEnv })

/** Takes every connection that the server has, and those of the nodes when they end. */
let hogs: SQL[] = []

async function takeAllConnections({ postgres, database }: World): Promise<void> {
  // It was made before there were none left: with it the nodes' own are ended.
  const admin = new SQL({ url: postgres.url(), max: 1 })
  const most = Number((await admin.unsafe('SHOW max_connections'))[0].max_connections)
  hogs = [admin]
  // One that a node is just making has a slot, and shows in no view yet: only all of them here are all.
  while (hogs.length < most) {
    const hog = new SQL({ url: postgres.url(), max: 1, idleTimeout: 0 })
    const isTaken = await hog.unsafe('SELECT 1').then(
      () => true,
      () => false,
    )
    if (isTaken) hogs.push(hog)
    else await admin.unsafe(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database}'`)
  }
}

async function giveThemBack(): Promise<void> {
  await Promise.all(hogs.splice(0).map((hog) => hog.close()))
}

registerDatabaseOutage('has no connection left', world, { isSlow: true, begin: takeAllConnections, end: giveThemBack })

/** This many requests have to meet the end of a connection. */
const enoughRefusals = 100

test('[INV3] [END1] [EXT4] connections are ended in a storm: whoever asks again is through, each is told once', async () => {
  const { one, two, postgres, database } = world()
  const nodes = [one, two]
  const pairs = await Promise.all(
    Array.from({ length: 20 }, (_, i) => pairOn(nodes[i % 2] ?? one, nodes[Math.floor(i / 2) % 2] ?? one)),
  )
  const standing = await pairOn(one, two)
  const call = await connectedCall(standing)
  let refusals = 0
  let storming = true
  const storm = postgres.storm(database, () => storming)
  const made = await Promise.all(pairs.map((pair) => callUntil(pair, () => refusals >= enoughRefusals)))
  storming = false
  await storm
  expect(refusals).toBeGreaterThanOrEqual(enoughRefusals)
  for (const [i, { caller, callee }] of pairs.entries()) {
    for (const callUuid of made[i] ?? []) {
      expect(toldOf(callee, 'call.ringing', callUuid)).toBe(1)
      expect(toldOf(caller, 'call.accepted', callUuid)).toBe(1)
      expect(toldOf(callee, 'call.ended', callUuid)).toBe(1)
    }
    const last = made[i]?.at(-1) ?? ''
    expect(await historyOf(one, pairs[i] as ExtendedPair, last)).toMatchObject({
      status: 'ended',
      end_reason: 'hangup',
    })
  }
  const rows = await postgres.query('SELECT count(*)::int AS n FROM calls WHERE ended_at IS NULL', world().databaseUrl)
  expect(rows[0].n).toBe(1)
  expect(await insist(standing.caller, 'webrtc.ice_candidate', candidate(call, 1))).toBe(0)
  await standing.callee.next('webrtc.ice_candidate')
  stopAll(standing, ...pairs)

  async function insisting(client: ExtendedClient, event: string, data: object): Promise<void> {
    const times = await insist(client, event, data)
    refusals += times
  }

  async function callUntil({ caller, callee, calleeId }: ExtendedPair, isEnough: () => boolean): Promise<string[]> {
    const calls: string[] = []
    while (!isEnough() && calls.length < 200) {
      const data = { call_uuid: crypto.randomUUID() }
      const isIt = (message: { data: { call_uuid?: string } }) => message.data?.call_uuid === data.call_uuid
      await insisting(caller, 'call.invite', inviteOf(calleeId, data))
      await callee.next('call.ringing', isIt)
      await insisting(callee, 'call.accept', data)
      await caller.next('call.accepted', isIt)
      await insisting(caller, 'call.end', data)
      await callee.next('call.ended', isIt)
      calls.push(data.call_uuid)
    }
    return calls
  }
}, 240_000)
