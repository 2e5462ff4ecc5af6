import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { connectPair, invite } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { Service } from '@ringwire/testkit/service'
import { ask } from '../scenarios/backend/calls.ts'

let service: Service
beforeAll(async () => {
  service = await new Service().start()
}, 120_000)
afterAll(() => service?.dispose())

/** Changes the schema beside the service. */
function execute(sql: string): void {
  const db = new Database(join(service.dataDir, 'ringwire.db'))
  db.run('PRAGMA busy_timeout = 5000')
  db.run(sql)
  db.close()
}

test('[SRV2] an erasure that is done answers 200, also where its counts cannot be forgotten: they come once more', async () => {
  const { caller, callee, callerId, calleeId } = await connectPair(service)
  const callUuid = await invite(caller, calleeId)
  callee.send('call.reject', { call_uuid: callUuid })
  await caller.next('call.rejected')
  const erase = async () => {
    const { status, body } = await ask(service, 'DELETE', `participants/customer/${callerId}`)
    return [status, body.calls]
  }
  /** How often the counts could not be forgotten: that is tried after the answer was written. */
  const kept = () => service.log.split('the counts of an erasure could not be forgotten').length - 1
  execute("CREATE TRIGGER kept BEFORE DELETE ON erasures BEGIN SELECT RAISE(ABORT, 'kept'); END")
  for (const time of [1, 2]) {
    expect(await erase()).toEqual([200, 1])
    await until(`the counts were kept ${time} times`, () => kept() === time)
  }
  execute('DROP TRIGGER kept')
  expect([await erase(), await erase()]).toEqual([
    [200, 1],
    [200, 0],
  ])
})
