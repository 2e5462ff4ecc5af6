// Runs the service so that it does not outlive what started it. Plain Node.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { basename } from 'node:path'
import { runtimeSettings } from './runtime-settings.mjs'

/** The service reads this descriptor, which is a pipe, and ends with the other end of it (src/cli/worker-process.ts). */
const pipeOption = '--as-child-of-the-launcher'
const lookMs = 500

/**
 * The processes from this one up to the npm that started it, each with its parent; none where no npm did. npm does not
 * pass on every signal, and cannot pass on SIGKILL, so a process that it started looks whether npm is still there.
 */
export function linksToNpm() {
  if (process.platform === 'win32' || process.env.npm_execpath === undefined) return []
  // Shells other than that of Debian become what they start, so that npm is the parent.
  if (process.platform !== 'linux') return process.ppid > 1 ? [{ pid: process.pid, parent: process.ppid }] : []
  const links = []
  let upToNpm = 0
  for (let pid = process.pid; ; ) {
    const parent = parentOf(pid)
    const words = wordsOf(parent)
    const npm = isNpm(words)
    // A process that a shell of npm has put into the background loses it, and is meant to go on.
    if (!npm && words[1] !== '-c') return links.slice(0, upToNpm)
    links.push({ pid, parent })
    if (npm) upToNpm = links.length
    pid = parent
  }
}

function isIntact(links) {
  return links.every(({ pid, parent }) => parentOf(pid) === parent)
}

function parentOf(pid) {
  if (pid === process.pid) return process.ppid
  // The name of the program is in brackets, and may hold anything.
  return Number(/.*\) \S (\d+) /s.exec(read(`/proc/${pid}/stat`))?.[1] ?? 0)
}

/** The words with which it was started; npm writes "npm start" over them. */
function wordsOf(pid) {
  return read(`/proc/${pid}/cmdline`).split(/[\0 ]/)
}

function isNpm(words) {
  return words.slice(0, 2).some((word) => /^(npm|npx|pnpm|yarn)(-cli)?(\.[cm]?js)?$/.test(basename(word)))
}

function read(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Runs `program main …args`, and ends as it ends. `serve` stops with the npm above it, and at once with this process. */
export function launch({ program, main, args, env = process.env, links = linksToNpm() }) {
  const isService = args[0] === 'serve'
  const child = spawn(program, isService ? [main, 'serve', pipeOption, ...args.slice(1)] : [main, ...args], {
    stdio: ['inherit', 'inherit', 'inherit', ...(isService ? ['pipe'] : [])],
    env: { ...runtimeSettings, ...env },
  })
  let isTold = false
  const tell = (signal) => {
    // The service looks for a renewed certificate then, and goes on.
    if (signal !== 'SIGHUP') isTold = true
    child.kill(signal)
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']) process.on(signal, tell)
  if (links.length > 0) {
    const looking = setInterval(() => {
      if (isIntact(links)) return
      clearInterval(looking)
      // A second signal would end it without its drain.
      if (!isTold) tell('SIGTERM')
    }, lookMs)
  }
  child.on('error', (error) => {
    console.error(`Bun could not be started: ${error.message}`)
    process.exit(1)
  })
  child.on('exit', (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)))
}
