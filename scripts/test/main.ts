// Finds the tests, starts what they share, runs them, and counts.
import { longVariable } from '../../packages/testkit/src/long.ts'
import { hasBothBrowsers } from '../browser.mjs'
import { root } from '../setup.mjs'
import { hasHeadlessShell, requireSystem } from '../system.mjs'
import { cpuSecondsOf } from './cpu-time.ts'
import { findJobs, usesService } from './jobs.ts'
import { placeProgram } from './program.ts'
import { runJobs, type Total } from './run-jobs.ts'
import { startSharedServers } from './servers.ts'

const fewJobs = 10

function finish({ passed, failed, failedJobs }: Total): void {
  if (failedJobs.length > 0) console.log('\nFailed:')
  for (const { name, digest } of failedJobs) console.log([name, ...digest.map((line) => `  ${line}`)].join('\n'))
  // Of whatever this run has started, so before the servers go.
  const cpuS = cpuSecondsOf(process.pid)
  if (cpuS !== undefined) console.log(`CPU ${cpuS.toFixed(0)} s, with all servers and browsers`)
  console.log(`${passed} passed, ${failed} failed`)
  process.exitCode = failed === 0 ? 0 : 1
}

const all = process.argv.includes('--all')
const words = process.argv.slice(2).filter((word) => word !== '--all')
// Before the jobs are counted: which browsers there are decides how many.
if (all)
  requireSystem(['chromium-tabs', 'firefox', 'xvfb', ...(hasHeadlessShell() ? (['chromium-shell'] as const) : [])])
const bothBrowsers = all && hasBothBrowsers()
const jobs = findJobs(
  root,
  // Who names a long test wants it.
  all || words.length > 0 ? 'all' : 'test',
  words.map((word) => word.replace(/^\.\//, '')),
  { bothBrowsers },
)
if (jobs.length === 0) {
  console.log(`No test matches ${words.join(' ')}.`)
  finish({ passed: 0, failed: 1, failedJobs: [] })
} else if (!jobs.some(usesService)) finish(await runJobs({ root, jobs }))
else {
  requireSystem([
    'chromium',
    'coturn',
    'nginx',
    'haproxy',
    'postgresql',
    'pgbouncer',
    'redis',
    'prometheus',
    'promtool',
    'systemd',
    'busybox',
    'c-compiler',
    'php',
    'python3',
    'zsh',
    'fish',
    'kamailio',
    'sipp',
  ])
  const servers = await startSharedServers({ bothBrowsers })
  // For a few it is not worth to build the service.
  const program = jobs.length > fewJobs ? placeProgram(root) : undefined
  const stop = async (): Promise<void> => {
    program?.remove()
    await servers.stop()
  }
  // What still runs ends with this process.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => void stop().finally(() => process.exit(1)))
  }
  try {
    await program?.build()
    finish(
      await runJobs({
        root,
        jobs,
        browserCpuS: servers.browserCpuS,
        env: { ...servers.env, ...program?.env, ...(all ? { [longVariable]: '1' } : {}) },
      }),
    )
  } finally {
    await stop()
  }
}
