// Runs test files, each in a process of its own, several at a time: one that crashes or never ends fails alone.
// A test that is skipped, left to do or missing counts as failed.
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'

const testTimeoutMs = 20_000
/** A whole file may take this long; it is there for files that never end. */
const defaultFileTimeoutMs = 300_000
const mostAtOnce = 4

function killGroup(child, signal) {
  try {
    process.kill(-child.pid, signal)
  } catch {
    // It ended by itself.
  }
}

/** Runs one file and gives its output, its exit code and its report, which is missing where the process died. */
function runFile({ root, bun, running, fileTimeoutMs }, file, reportPath) {
  return new Promise((resolve) => {
    const args = ['test', `./${file}`, `--timeout=${testTimeoutMs}`, '--no-orphans', '--only-failures']
    args.push('--reporter=junit', `--reporter-outfile=${reportPath}`)
    // CI: a `test.only` that was left behind is an error. A group of its own, so that it can be ended as a whole.
    const env = { ...process.env, CI: 'true' }
    const child = spawn(bun, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    running.add(child)
    const output = []
    child.stdout.on('data', (chunk) => output.push(chunk))
    child.stderr.on('data', (chunk) => output.push(chunk))
    const timer = setTimeout(() => {
      output.push(Buffer.from(`\nNot done after ${fileTimeoutMs / 1000} s: killed.\n`))
      killGroup(child, 'SIGKILL')
    }, fileTimeoutMs)
    const end = (code, signal) => {
      clearTimeout(timer)
      running.delete(child)
      if (signal) output.push(Buffer.from(`\nEnded by ${signal}.\n`))
      const report = existsSync(reportPath) ? readFileSync(reportPath, 'utf8') : ''
      resolve({ output: Buffer.concat(output).toString(), code, report })
    }
    child.on('error', (error) => {
      output.push(Buffer.from(`${error.message}\n`))
      end(1, null)
    })
    // 'exit', not 'close': a process that a test left behind may hold the pipes open. The rest is read first.
    child.on('exit', (code, signal) => setImmediate(() => setTimeout(end, 20, code, signal)))
  })
}

/** What a file's report says, with everything that is not a test that passed counted as failed. */
function judge({ code, report }) {
  const counts = /<testsuites [^>]*\btests="(\d+)"[^>]*\bfailures="(\d+)"[^>]*\bskipped="(\d+)"/.exec(report)
  if (counts === null) return { passed: 0, failed: 1, remark: `no report (exit code ${code})` }
  const [tests, failures, skipped] = counts.slice(1).map(Number)
  const passed = tests - failures - skipped
  if (failures + skipped > 0) {
    return { passed, failed: failures + skipped, remark: skipped > 0 ? `${skipped} skipped or to do` : undefined }
  }
  if (code !== 0) return { passed, failed: 1, remark: `exit code ${code}` }
  if (tests === 0) return { passed, failed: 1, remark: 'no tests' }
  return { passed, failed: 0, remark: undefined }
}

function line({ passed, failed, remark }, file, ms) {
  const counts = failed === 0 ? `${passed} passed` : `${passed} passed, ${failed} failed`
  return `${failed === 0 ? 'ok  ' : 'FAIL'} ${file}: ${counts} (${(ms / 1000).toFixed(1)} s)${remark ? `: ${remark}` : ''}`
}

/**
 * Runs the files below `root` with the given Bun, prints a line for each, and gives the counts. `isHeavy` tells the files
 * that need more than one core each: of these only half as many run at once, and they begin first.
 */
export async function runFiles({ root, bun, files, isHeavy = () => false, fileTimeoutMs = defaultFileTimeoutMs }) {
  const reports = mkdtempSync(join(tmpdir(), 'ringwire-reports-'))
  const running = new Set()
  const onSignal = () => {
    for (const child of running) killGroup(child, 'SIGKILL')
    rmSync(reports, { recursive: true, force: true })
    process.exit(1)
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, onSignal)

  const total = { passed: 0, failed: 0, failedFiles: [] }
  const runOne = async (file) => {
    const startedAt = performance.now()
    const reportPath = join(reports, `${files.indexOf(file)}.xml`)
    const result = await runFile({ root, bun, running, fileTimeoutMs }, file, reportPath)
    const verdict = judge(result)
    if (verdict.failed > 0) console.log(result.output.trim())
    console.log(line(verdict, file, performance.now() - startedAt))
    total.passed += verdict.passed
    total.failed += verdict.failed
    if (verdict.failed > 0) total.failedFiles.push(file)
  }
  const heavy = files.filter(isHeavy)
  const light = files.filter((file) => !isHeavy(file))
  const worker = async (queues) => {
    for (const queue of queues) {
      for (let file = queue.shift(); file !== undefined; file = queue.shift()) await runOne(file)
    }
  }
  const atOnce = Math.min(availableParallelism(), mostAtOnce)
  const heavyAtOnce = Math.max(1, Math.floor(atOnce / 2))
  const workers = Array.from({ length: atOnce }, (_, i) => worker(i < heavyAtOnce ? [heavy, light] : [light]))
  await Promise.all(workers)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.removeListener(signal, onSignal)
  rmSync(reports, { recursive: true, force: true })
  return total
}
