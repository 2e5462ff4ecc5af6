/*
 * A process that commits and tells until it is killed: `sqlite DIR` or `postgres URL`. Per step one line, `committed` or
 * `told`, with its call_uuid and version, once that is so.
 */
import { writeSync } from 'node:fs'
import type { Step } from '../../src/call/effects.ts'
import { accepted, created, ringing } from '../../src/ports/call-store.fixture.ts'
import { openPostgres } from '../../src/stores/postgres/open.ts'
import { openSqlite } from '../../src/stores/sqlite/open.ts'

const [kind, target = ''] = process.argv.slice(2)
const callsAtOnce = 20
const { calls, outbox } =
  kind === 'sqlite'
    ? await openSqlite({ dataDir: target, synchronous: 'FULL', exclusive: true })
    : await openPostgres({ url: target })

const say = (word: string, { call }: Step) => writeSync(1, `${word} ${call.callUuid} ${call.version}\n`)

async function commit(step: Step): Promise<void> {
  await calls.transition(step.call, () => ({ steps: [step] }))
  say('committed', step)
}

async function drive(): Promise<void> {
  for (;;) {
    const call = ringing()
    const first = created(call)
    await commit(first)
    await outbox.remove([outbox.rowOf(first) ?? 0])
    say('told', first)
    await commit(accepted(call))
  }
}

for (let index = 0; index < callsAtOnce; index++) void drive()
