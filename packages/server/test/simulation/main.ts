/** `npm run simulate`: whole clusters in virtual time, a world for each seed, judged as chaos judges. */
import { saveRecording } from '../chaos/recording.ts'
import { printReport } from '../chaos/report.ts'
import { storyOf } from '../chaos/story.ts'
import { parseOptions, type SimulateOptions, usage } from './options.ts'
import { isBad, type Lived } from './outline.ts'
import { shrink } from './shrink.ts'
import { live } from './world.ts'

/** Of so many seeds that fail the smallest world is looked for, and told in full. */
const told = 3

async function run(options: SimulateOptions): Promise<number> {
  const { from, seeds, world } = options
  const { nodes, users, seconds } = world
  console.log(
    `seeds ${from} to ${from + seeds - 1}: ${nodes} nodes, ${users} people, ${seconds} simulated seconds each`,
  )
  const startedAt = performance.now()
  const sums = { steps: 0, calls: 0, faults: new Map<string, number>() }
  const bad: Lived[] = []
  await liveAll(options, (lived) => {
    sums.steps += lived.steps
    sums.calls += lived.calls
    for (const kind of lived.faults) sums.faults.set(kind, (sums.faults.get(kind) ?? 0) + 1)
    if (!isBad(lived)) return
    bad.push(lived)
    for (const line of lived.violations) console.log(`seed ${lived.seed}: ${line}`)
    if (lived.failure !== undefined) console.log(`seed ${lived.seed}: the simulation failed: ${lived.failure}`)
  })
  const tookS = (performance.now() - startedAt) / 1000
  console.log(`faults: ${[...sums.faults].map(([kind, count]) => `${kind} ${count}`).join(', ')}`)
  console.log(
    `${sums.calls} calls, ${sums.steps} events, ${tookS.toFixed(1)} s, ${(tookS / seeds).toFixed(3)} s a seed`,
  )
  await tell(bad, options)
  console.log(`${seeds} seeds, ${bad.length} of them with violations`)
  return bad.length === 0 ? 0 : 1
}

/** Each thread has one world at a time. */
async function liveAll(
  { from, seeds, workers, world }: SimulateOptions,
  onLived: (lived: Lived) => void,
): Promise<void> {
  let next = from
  const threads = Array.from(
    { length: Math.min(workers, seeds) },
    () => new Worker(new URL('seeds.ts', import.meta.url)),
  )
  await Promise.all(
    threads.map(async (thread) => {
      while (next < from + seeds) {
        const { promise, resolve, reject } = Promise.withResolvers<Lived>()
        thread.onmessage = ({ data }: MessageEvent<Lived>) => resolve(data)
        thread.onerror = ({ message }) => reject(new Error(message))
        thread.postMessage({ ...world, seed: next++ })
        onLived(await promise)
      }
      thread.terminate()
    }),
  )
}

async function tell(bad: readonly Lived[], { world, record }: SimulateOptions): Promise<void> {
  const failed = bad.filter(({ failure }) => failure === undefined).sort((one, other) => one.seed - other.seed)
  for (const { seed } of failed.slice(0, told)) {
    const smallest = await shrink({ ...world, seed })
    const { recording, verdict, traces, mix } = await live(smallest)
    console.log(`The smallest world of seed ${seed}: ${JSON.stringify(smallest)}, faults: ${mix}`)
    printReport({ ...recording, traces }, verdict, console.log)
    for (const call of callsIn(recording.header.stuck))
      for (const line of storyOf({ ...recording, traces }, call)) console.log(line)
    if (record !== null && seed === failed[0]?.seed) saveRecording(record, recording)
  }
}

const callsIn = (texts: readonly string[]) => new Set(texts.flatMap((text) => /call (\S+)$/.exec(text)?.[1] ?? []))

const parsed = parseOptions(process.argv.slice(2))
if (!parsed.ok) {
  console.error(`${parsed.message}\n${usage}`)
  process.exitCode = 2
} else process.exitCode = await run(parsed.options)
