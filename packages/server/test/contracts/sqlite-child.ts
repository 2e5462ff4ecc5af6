/*
 * A process for the tests of what happens between processes. `serve DIR` opens the directory and stays; `write DIR`
 * also drives many calls and says what was acknowledged, one `call_uuid version` per line; `open DIR` opens and ends.
 */
import { writeSync } from 'node:fs'
import { accepted, created, ringing, there, touched } from '../../src/ports/call-store.fixture.ts'
import { openSqlite } from '../../src/stores/sqlite/open.ts'

const [mode, dataDir = ''] = process.argv.slice(2)
const callsAtOnce = 100
const say = (line: string) => writeSync(1, `${line}\n`)

try {
  const stores = await openSqlite({ dataDir, synchronous: 'FULL', exclusive: mode !== 'beside' })
  say('open')
  if (mode === 'write') for (let index = 0; index < callsAtOnce; index++) drive()
  else if (mode !== 'serve') await stores.close()

  async function drive(): Promise<void> {
    for (;;) {
      const call = ringing()
      const acknowledge = (steps: readonly { call: { version: number } }[]) =>
        say(`${call.callUuid} ${steps[0]?.call.version}`)
      acknowledge((await stores.calls.transition(call, () => ({ steps: [created(call)] }))).steps)
      acknowledge((await stores.calls.transition(call, () => ({ steps: [accepted(call)] }))).steps)
      for (let index = 0; index < 3; index++) {
        const next = await stores.calls.transition(call, (now) => ({ steps: [touched(there(now), `s${index}`)] }))
        acknowledge(next.steps)
      }
    }
  }
} catch (error) {
  say(error instanceof Error ? error.message : String(error))
  process.exitCode = 1
}
