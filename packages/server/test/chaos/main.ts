/** `npm run chaos`: runs the service with people and faults, and judges all that was seen. */
import { check } from './check/check.ts'
import { parseOptions, type RunOptions, usage } from './options.ts'
import { loadRecording, type Recording, saveRecording } from './recording.ts'
import { printReport } from './report.ts'
import { runChaos } from './run.ts'
import { selfTest } from './self-test/self-test.ts'

async function run(options: RunOptions): Promise<number> {
  const { seed, nodes, store, users, durationS, record } = options
  console.log(`seed ${seed}: ${nodes} nodes, ${store}, ${users} users, ${durationS} s`)
  const interruption = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interruption.abort())
  const recording = await runChaos(options, console.log, interruption.signal)
  if (record !== null) saveRecording(record, recording)
  return judge(recording)
}

function judge(recording: Recording): number {
  const verdict = check(recording)
  printReport(recording, verdict, console.log)
  return verdict.violations.length === 0 ? 0 : 1
}

function provesItself(): number {
  const results = selfTest()
  for (const { name, problem } of results)
    console.log(`${problem === undefined ? 'ok  ' : 'FAIL'} ${name}${problem ?? ''}`)
  return results.some(({ problem }) => problem !== undefined) ? 1 : 0
}

const parsed = parseOptions(process.argv.slice(2), crypto.getRandomValues(new Uint32Array(1))[0] ?? 0)
if (!parsed.ok) {
  console.error(`${parsed.message}\n${usage}`)
  process.exitCode = 2
} else if (parsed.task.kind === 'self-test') process.exitCode = provesItself()
else if (parsed.task.kind === 'check') process.exitCode = judge(loadRecording(parsed.task.file))
else process.exit(await run(parsed.task.options))
