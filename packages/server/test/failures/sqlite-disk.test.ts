import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { until } from '@ringwire/testkit/patience'
import { Service } from '@ringwire/testkit/service'
import { databaseFile } from '../../src/stores/sqlite/data-dir.ts'
import { errorCode, inviteOf } from '../support/sessions.ts'
import { mountSmallDisk, type SmallDisk } from '../support/small-disk.ts'
import { becomesReady, becomesUnready, saysFull, saysLostAndBack } from './world.ts'

let disk: SmallDisk
let service: Service
beforeAll(async () => {
  disk = mountSmallDisk('8m')
  service = await new Service({ RINGWIRE_DATA_DIR: disk.path }).start()
})
afterAll(async () => {
  await service.dispose()
  disk.remove()
})

test('[HEALTH1] the disk of SQLite is full: not ready although nobody has tried to write; with room it is ready again', async () => {
  await becomesReady(service)
  disk.fill()
  await becomesUnready('database', service)
  disk.clear()
  await becomesReady(service)
})

test('[LOG2] the log says that a store is lost, and that it is back, also where nobody asks for /readyz', async () => {
  const saysMore = (what: string) => {
    const before = timesOf(what)
    return until(`the log says ${what} again`, () => timesOf(what) > before)
  }
  const timesOf = (what: string) => service.log.split(`"message":"${what}"`).length - 1
  const lost = saysMore('store lost')
  disk.fill()
  await lost
  const back = saysMore('store back')
  disk.clear()
  await back
  await saysLostAndBack('database', service)
}, 240_000)

test('[LOG2] what cannot be written is refused, and the log says that the store is full', async () => {
  const [caller, callee] = await Promise.all([
    service.connect({ user_id: 'ann', role: 'customer' }),
    service.connect({ user_id: 'ben', role: 'agent' }),
  ])
  disk.fill()
  // Pages that are there take some more.
  const filler = 'x'.repeat(900)
  await until('an invite is refused', async () => {
    const code = await errorCode(caller, 'call.invite', inviteOf('ben', { metadata: { filler } }))
    if (code !== undefined) expect(code).toBe('SERVICE_UNAVAILABLE')
    return code !== undefined
  })
  await saysFull(/database or disk is full/, service)
  disk.clear()
  await becomesReady(service)
  await Promise.all([caller.close(), callee.close()])
}, 240_000)

test('[HEALTH1] another program keeps the file locked: not ready until it lets go', async () => {
  const other = new Database(join(disk.path, databaseFile))
  // The service may be writing just now.
  other.run('PRAGMA busy_timeout = 10000')
  other.run('BEGIN IMMEDIATE')
  await becomesUnready('database', service)
  other.run('ROLLBACK')
  other.close()
  await becomesReady(service)
})
