import { expect, test } from 'bun:test'
import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, statSync, writeSync } from 'node:fs'
import { chown } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ExtendedClient } from '../support/extended-client.ts'
import { connectedCall } from '../support/extended-flows.ts'
import { candidate } from '../support/flows.ts'
import type { Postgres } from '../support/postgres.ts'
import { inviteOf } from '../support/sessions.ts'
import { hangUp, historyOf, pairOn, stopAll } from './people.ts'
import { ask, becomesReady, insist, toldOf, worldFor } from './world.ts'

/** A disk of its own: a tmpfs of a fixed size, which only root may mount. */
const disk = mkdtempSync(join(tmpdir(), 'ringwire-disk-'))
const ballast = join(disk, 'ballast')

async function databaseOnSmallDisk(postgres: Postgres): Promise<string> {
  const { exitCode, stderr } = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=40m', 'tmpfs', disk])
  if (exitCode !== 0) throw new Error(`this test needs root, and the right to mount: ${stderr}`)
  const { uid, gid } = statSync(postgres.dataDir)
  await chown(disk, uid, gid)
  await postgres.query(`CREATE TABLESPACE small LOCATION '${disk}'`)
  await postgres.query('CREATE DATABASE calls TABLESPACE small')
  return postgres.url('calls')
}

function removeDisk(): void {
  Bun.spawnSync(['umount', disk])
  rmdirSync(disk)
}

/** Until nothing more fits. */
function fillDisk(): void {
  const file = openSync(ballast, 'w')
  try {
    for (let size = 1024 * 1024; size >= 4096; size /= 2) {
      const bytes = Buffer.alloc(size)
      for (let isRoom = true; isRoom; ) {
        try {
          isRoom = writeSync(file, bytes) === size
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
          isRoom = false
        }
      }
    }
  } finally {
    closeSync(file)
  }
}

const world = worldFor({ makeDatabase: databaseOnSmallDisk, atEnd: removeDisk })

test('[EXT3] [INV3] the disk of PostgreSQL is full: what is not written is refused, calls go on, and room is all it takes', async () => {
  const { one, two, postgres, databaseUrl } = world()
  const [standing, calling] = await Promise.all([pairOn(one, two), pairOn(two, one)])
  const call = await connectedCall(standing)
  for (const client of [standing.caller, standing.callee]) {
    await client.request('webrtc.ice_candidate', candidate(call, 0))
  }
  fillDisk()
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

  // It answers, and that is what is asked.
  await becomesReady(one, two)

  rmSync(ballast)
  const [client, event, data] = refused
  await insist(client, event, data)
  if (event === 'call.invite') await ask(calling.callee, 'call.reject', data)
  await calling.caller.next('call.rejected', ({ data: { call_uuid } }) => call_uuid === data.call_uuid)
  await hangUp(one, standing, call)
  expect(await historyOf(two, calling, data.call_uuid)).toMatchObject({ status: 'rejected' })
  expect(toldOf(calling.callee, 'call.ringing', data.call_uuid)).toBe(1)
  expect(toldOf(calling.caller, 'call.rejected', data.call_uuid)).toBe(1)
  stopAll(standing, calling)
}, 40_000)
