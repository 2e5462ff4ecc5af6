import { expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { chown } from 'node:fs/promises'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import { candidate } from '@ringwire/testkit/flows'
import { connectedCall } from '../support/extended-flows.ts'
import type { Postgres } from '../support/postgres.ts'
import { inviteOf } from '../support/sessions.ts'
import { mountSmallDisk, type SmallDisk } from '../support/small-disk.ts'
import { hangUp, historyOf, pairOn, stopAll } from './people.ts'
import { ask, becomesReady, becomesUnready, insist, saysFull, toldOf, worldFor } from './world.ts'

let disk: SmallDisk

async function databaseOnSmallDisk(postgres: Postgres): Promise<string> {
  disk = mountSmallDisk('40m')
  const { uid, gid } = statSync(postgres.dataDir)
  await chown(disk.path, uid, gid)
  await postgres.query(`CREATE TABLESPACE small LOCATION '${disk.path}'`)
  await postgres.query('CREATE DATABASE calls TABLESPACE small')
  return postgres.url('calls')
}

const world = worldFor({ makeDatabase: databaseOnSmallDisk, atEnd: () => disk.remove() })

test('[EXT3] [INV3] [HEALTH1] [LOG2] the disk of PostgreSQL is full: what is not written is refused, calls go on, and room is all it takes', async () => {
  const { one, two, postgres, databaseUrl } = world()
  const [standing, calling] = await Promise.all([pairOn(one, two), pairOn(two, one)])
  const call = await connectedCall(standing)
  for (const client of [standing.caller, standing.callee]) {
    await client.request('webrtc.ice_candidate', candidate(call, 0))
  }
  disk.fill()
  // Pages that are there take some more.
  const rung: string[] = []
  const rejected: string[] = []
  let refused: readonly [client: ExtendedClient, event: string, data: { call_uuid: string }] | undefined
  while (refused === undefined && rung.length < 1_000) {
    const data = { call_uuid: crypto.randomUUID() }
    const wanted = inviteOf(calling.calleeId, { ...data, metadata: { filler: 'x'.repeat(900) } })
    for (const [client, event, what, taken] of [
      [calling.caller, 'call.invite', { ...wanted, ...data }, rung],
      [calling.callee, 'call.reject', data, rejected],
    ] as const) {
      const { code } = await ask(client, event, what)
      if (code === undefined) taken.push(data.call_uuid)
      else {
        expect(code).toBe('SERVICE_UNAVAILABLE')
        refused = [client, event, what]
        break
      }
    }
  }
  if (refused === undefined) throw new Error('the disk is not full')
  // All that was acknowledged is written, and nothing else.
  const stored = await postgres.query('SELECT call_uuid, ended_at FROM calls', databaseUrl)
  expect(stored.map(({ call_uuid }) => call_uuid).sort()).toEqual([call, ...rung].sort())
  expect(stored.filter(({ ended_at }) => ended_at !== null).length).toBe(rejected.length)
  expect((await ask(standing.caller, 'webrtc.ice_candidate', candidate(call, 1))).data).toEqual({
    call_uuid: call,
    status: 'connected',
  })
  await standing.callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate.endsWith(':1'))

  // It answers, and a small write may still find room in a page: no table can grow.
  await becomesUnready('database', one, two)
  await saysFull(/\(53100\)/, refused[0] === calling.caller ? two : one)

  disk.clear()
  await becomesReady(one, two)
  const [client, event, data] = refused
  await insist(client, event, data)
  if (event === 'call.invite') await ask(calling.callee, 'call.reject', data)
  await calling.caller.next('call.rejected', ({ data: { call_uuid } }) => call_uuid === data.call_uuid)
  await hangUp(one, standing, call)
  expect(await historyOf(two, calling, data.call_uuid)).toMatchObject({ status: 'rejected' })
  expect(toldOf(calling.callee, 'call.ringing', data.call_uuid)).toBe(1)
  expect(toldOf(calling.caller, 'call.rejected', data.call_uuid)).toBe(1)
  stopAll(standing, calling)
}, 240_000)
