// Runs jobs, each in a process of its own: if one crashes or never ends, only that one fails. As many at a time as there are
// cores, one more that gives way to the others, and one more wherever a core has room: most jobs wait for a clock, a disk or
// a server, most of the time. A test that is skipped, left to do or missing counts as failed.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { watchIdleCores } from './idle-cores.ts'
import { browserUse, type Job, onlyComputes } from './jobs.ts'

/** There for tests that never end: none comes near it, on two busy cores either. In ms. */
const testTimeoutMs = 240_000
const defaultJobTimeoutMs = 3_600_000
const mostAtOnce = 4
/** The same for each core, with those that are begun because it is idle. */
const mostOnCore = 4
/** One that has just begun has to be seen before there is another one, in ms. */
const lookMs = 1_000
/** This much of a core is enough for one more. */
const enoughIdle = 0.4
/** Tests of one file that run at once: some of them start two nodes each. */
const mostConcurrent = 6
/** As `nice` has it. */
const niceness = 5
/** For what a process said before it ended, in ms. */
const readingMs = 5_000

export interface RunOptions {
  readonly root: string
  readonly jobs: readonly Job[]
  readonly env?: Readonly<Record<string, string>>
  readonly jobTimeoutMs?: number
  /** How many cores were idle since the last call. */
  readonly idleCores?: () => number
  /** What the browser that the jobs share has used until now, in s. */
  readonly browserCpuS?: () => number
}

export interface Total {
  passed: number
  failed: number
  readonly failedJobs: FailedJob[]
}

export interface FailedJob {
  readonly name: string
  /** Its tests that failed, and with what, in a few lines: enough for where the whole output is cut short. */
  readonly digest: readonly string[]
}

interface Result {
  readonly output: string
  readonly code: number | null
  /** Empty where the process died. */
  readonly report: string
  /** Of its processes that have ended, in s. */
  readonly cpuS: number
}

interface Verdict {
  readonly passed: number
  readonly failed: number
  readonly remark?: string | undefined
}

async function runJob(job: Job, reportPath: string, { root, env, jobTimeoutMs }: Required<RunOptions>) {
  const args = ['test', `./${job.file}`, `--timeout=${testTimeoutMs}`, '--no-orphans', '--only-failures']
  args.push(`--max-concurrency=${mostConcurrent}`, '--reporter=junit', `--reporter-outfile=${reportPath}`)
  const child = Bun.spawn([process.execPath, ...args], {
    cwd: root,
    // CI: a `test.only` that was left behind is an error.
    env: { ...process.env, ...env, ...job.env, CI: 'true' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  // Before it starts threads, which have its niceness.
  if (onlyComputes(job)) setPriority(child.pid, niceness)
  const output: Buffer[] = []
  const reading = Promise.all([collect(child.stdout, output), collect(child.stderr, output)])
  const timer = setTimeout(() => {
    output.push(Buffer.from(`\nNot done after ${jobTimeoutMs / 1000} s: killed.\n`))
    child.kill('SIGKILL')
  }, jobTimeoutMs)
  await child.exited
  clearTimeout(timer)
  // A process that a test left behind may hold the pipes open.
  await Promise.race([reading, Bun.sleep(readingMs)])
  if (child.signalCode) output.push(Buffer.from(`\nEnded by ${child.signalCode}.\n`))
  const report = existsSync(reportPath) ? readFileSync(reportPath, 'utf8') : ''
  const cpuS = Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6
  return { output: Buffer.concat(output).toString(), code: child.exitCode, report, cpuS } satisfies Result
}

async function collect(stream: ReadableStream<Uint8Array>, output: Buffer[]): Promise<void> {
  for await (const chunk of stream) output.push(Buffer.from(chunk))
}

/** What a job's report says, with everything that is not a test that passed counted as failed. */
function judge({ code, report }: Result): Verdict {
  const counts = /<testsuites [^>]*\btests="(\d+)"[^>]*\bfailures="(\d+)"[^>]*\bskipped="(\d+)"/.exec(report)
  if (counts === null) return { passed: 0, failed: 1, remark: `no report (exit code ${code})` }
  const [tests = 0, failures = 0, skipped = 0] = counts.slice(1).map(Number)
  const passed = tests - failures - skipped
  if (failures + skipped > 0) {
    return { passed, failed: failures + skipped, remark: skipped > 0 ? `${skipped} skipped or to do` : undefined }
  }
  if (code !== 0) return { passed, failed: 1, remark: `exit code ${code}` }
  if (tests === 0) return { passed, failed: 1, remark: 'no tests' }
  return { passed, failed: 0 }
}

function line({ passed, failed, remark }: Verdict, name: string, ms: number, cpuS: number): string {
  const counts = failed === 0 ? `${passed} passed` : `${passed} passed, ${failed} failed`
  const times = `${(ms / 1000).toFixed(1)} s, CPU ${cpuS.toFixed(1)} s`
  return `${failed === 0 ? 'ok  ' : 'FAIL'} ${name}: ${counts} (${times})${remark ? `: ${remark}` : ''}`
}

const digestLines = 40

/** The names of what failed, each error with its comparison, and what was said at the end where neither is there. */
function digestOf(output: string): readonly string[] {
  const lines = output.split('\n').map((line) => line.trimEnd().slice(0, 200))
  const telling = lines.filter((line) => /^(\(fail\)|error:|Expected|Received|[-+] |\s+at .*\.test\.ts)/.test(line))
  return telling.length > 0 ? telling.slice(0, digestLines) : lines.slice(-digestLines)
}

/** Runs the jobs in their order, prints a line for each, and gives the counts. */
export async function runJobs(options: RunOptions): Promise<Total> {
  const given = {
    env: {},
    jobTimeoutMs: defaultJobTimeoutMs,
    idleCores: watchIdleCores(),
    browserCpuS: () => 0,
    ...options,
  }
  const reports = mkdtempSync(join(tmpdir(), 'ringwire-reports-'))
  const removeReports = () => rmSync(reports, { recursive: true, force: true })
  // Also where a signal ends the run.
  process.once('exit', removeReports)
  const total: Total = { passed: 0, failed: 0, failedJobs: [] }
  let running = 0
  const runOne = async (job: Job) => {
    const startedAt = performance.now()
    running++
    const browserBefore = given.browserCpuS()
    const result = await runJob(job, join(reports, `${given.jobs.indexOf(job)}.xml`), given)
    running--
    // With what another job did in it meanwhile.
    const cpuS = result.cpuS + (browserUse(job) === undefined ? 0 : given.browserCpuS() - browserBefore)
    const verdict = judge(result)
    if (verdict.failed > 0) console.log(result.output.trim())
    console.log(line(verdict, job.name, performance.now() - startedAt, cpuS))
    total.passed += verdict.passed
    total.failed += verdict.failed
    if (verdict.failed > 0) total.failedJobs.push({ name: job.name, digest: digestOf(result.output) })
  }
  const beside = given.jobs.filter(onlyComputes)
  const queue = given.jobs.filter((job) => !onlyComputes(job))
  const inBrowser = new Set<ReturnType<typeof browserUse>>()
  /** Never two of one kind in a browser at once; a worker that finds nothing else ends, and the one there goes on. */
  function takeNext(): Job | undefined {
    const at = queue.findIndex((job) => !inBrowser.has(browserUse(job)))
    return at < 0 ? beside.shift() : queue.splice(at, 1)[0]
  }
  const runTaken = async (job: Job) => {
    const use = browserUse(job)
    if (use !== undefined) inBrowser.add(use)
    await runOne(job)
    inBrowser.delete(use)
  }
  const inTurn = async (take: () => Job | undefined) => {
    for (let job = take(); job !== undefined; job = take()) await runTaken(job)
  }
  const cores = Math.min(availableParallelism(), mostAtOnce)
  const whereIdle = async () => {
    const more: Promise<void>[] = []
    given.idleCores()
    while (queue.length > 0) {
      await Bun.sleep(lookMs)
      const isIdle = given.idleCores() >= enoughIdle && running < cores * mostOnCore
      // The others have ended where all that was left was for the browser, and it was taken.
      const job = isIdle || running === 0 ? takeNext() : undefined
      if (job === undefined) continue
      const done = runTaken(job)
      done.catch(() => {})
      more.push(done)
    }
    await Promise.all(more)
  }
  try {
    const lanes = Array.from({ length: cores }, () => inTurn(takeNext))
    await Promise.all([...lanes, inTurn(() => beside.shift()), whereIdle()])
  } finally {
    removeReports()
    process.off('exit', removeReports)
  }
  return total
}
