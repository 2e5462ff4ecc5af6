/*
 * A process that commits until it is killed: `sqlite DIR` or `postgres URL`. Per step one line, with its call_uuid and
 * version, once it is committed.
 */
import { writeSync } from 'node:fs'
import type { Step } from '../../src/call/effects.ts'
import { accepted, created, ringing } from '../../src/ports/call-store.fixture.ts'
import { openPostgres } from '../../src/stores/postgres/open.ts'
import { openSqlite } from '../../src/stores/sqlite/open.ts'

const [kind, target = ''] = process.argv.slice(2)
const callsAtOnce = 20
const { calls, webhooks } =
  kind === 'sqlite'
    ? await openSqlite({ dataDir: target, synchronous: 'FULL', exclusive: true })
    : await openPostgres({ url: target })
await webhooks.refresh()

async function commit(step: Step): Promise<void> {
  await calls.transition(step.call, () => ({ steps: [step] }))
  writeSync(1, `${step.call.callUuid} ${step.call.version}\n`)
}

async function drive(): Promise<void> {
  for (;;) {
    const call = ringing()
    await commit(created(call))
    await commit(accepted(call))
  }
}

for (let index = 0; index < callsAtOnce; index++) void drive()
