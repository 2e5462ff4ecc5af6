import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { TimelineRow } from '../../src/call/observed.ts'
import { created, participant, ringing } from '../../src/ports/call-store.fixture.ts'
import { openConnection } from '../../src/stores/sqlite/connection.ts'
import { openHarness, type SqliteHarness } from '../../src/stores/sqlite/open.fixture.ts'
import type { ToWriter } from '../../src/stores/sqlite/write-worker.ts'

let harness: SqliteHarness
const posted: ToWriter[] = []
beforeEach(async () => {
  posted.length = 0
  harness = await openHarness({
    startWorker() {
      const worker = new Worker(new URL('./faulty-writer.ts', import.meta.url))
      const post = worker.postMessage.bind(worker)
      worker.postMessage = (message: ToWriter) => {
        posted.push(message)
        post(message)
      }
      return worker
    },
  })
})
afterEach(() => harness.close())

const ann = participant('ann')
const callsOfAnn = 150
const entriesOfEach = 10

/** Of calls of one participant, of both sides, and as many invites that were refused. */
async function fill(): Promise<void> {
  const { calls, timeline } = harness.stores()
  for (let n = 0; n < callsOfAnn; n++) {
    const call = n % 2 === 0 ? ringing(ann) : ringing(undefined, ann)
    await calls.transition(call, () => ({ steps: [created(call)] }))
    const rows = Array.from({ length: entriesOfEach }, (_, at): TimelineRow[] => {
      const row = { product: 'clinic', at, what: 'rung', detail: {} } as const
      return [
        { ...row, callUuid: call.callUuid, id: `caller ${at}`, side: 'caller' },
        { ...row, callUuid: call.callUuid, id: `callee ${at}`, side: 'callee' },
        { ...row, callUuid: crypto.randomUUID(), id: 'a', what: 'refused', side: 'caller', asker: ann },
      ]
    })
    await timeline.add(rows.flat())
  }
}

test('[SRV2] [TRACE1] many entries of a participant are forgotten in small steps, all of them on the writer thread', async () => {
  await fill()
  const { timeline } = harness.stores()
  posted.length = 0
  const beside = openConnection(harness.database)
  beside.run('BEGIN IMMEDIATE')
  // This thread does not wait for the other writer.
  const forgetting = timeline.forgetParticipant(ann)
  beside.run('ROLLBACK')
  beside.close()
  expect(await forgetting).toBe(2 * callsOfAnn * entriesOfEach)
  // No step removes more than 500 rows.
  expect(posted.length).toBeGreaterThanOrEqual((2 * callsOfAnn * entriesOfEach) / 500)
  expect(await timeline.refusedOf(ann, 10)).toEqual([])
  expect(await timeline.forgetParticipant(ann)).toBe(0)
})
