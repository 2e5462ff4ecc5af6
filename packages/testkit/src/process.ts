import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { overdue } from './patience.ts'

export interface RunningProcess {
  readonly pid: number
  /** What it wrote so far: to stdout, to stderr, and both as they came. */
  readonly out: string
  readonly err: string
  readonly output: string
  /** Its exit code, once it is gone. */
  readonly exited: Promise<number>
  /** The first match in what was or will be written; fails when the process ends before it, or after long. */
  waitFor(pattern: RegExp): Promise<RegExpMatchArray>
  signal(name: NodeJS.Signals): void
  /** Ends it, and reads what it said to the end. */
  stop(signal?: NodeJS.Signals): Promise<void>
}

/** How long a test waits for something that should come. A bound for failures, never a pace. */
const patienceMs = 30_000
/** After that a process that does not end is killed. */
const stopMs = 5_000

/** Starts a program and listens to what it says. Nothing of the tests' own environment but PATH and HOME reaches it. */
export function startProcess(command: readonly string[], env: Readonly<Record<string, string>> = {}): RunningProcess {
  const child = Bun.spawn([...command], {
    cwd: join(import.meta.dir, '..', '..', '..'),
    env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const texts = { out: '', err: '', output: '' }
  let isAtEnd = false
  let changed = Promise.withResolvers<void>()
  const wake = () => {
    changed.resolve()
    changed = Promise.withResolvers()
  }
  const read = async (stream: ReadableStream<Uint8Array>, name: 'out' | 'err') => {
    const decoder = new TextDecoder()
    for await (const bytes of stream) {
      const text = decoder.decode(bytes, { stream: true })
      texts[name] += text
      texts.output += text
      wake()
    }
  }
  const reading = Promise.all([read(child.stdout, 'out'), read(child.stderr, 'err')]).then(() => {
    isAtEnd = true
    wake()
  })

  return {
    pid: child.pid,
    get out() {
      return texts.out
    },
    get err() {
      return texts.err
    },
    get output() {
      return texts.output
    },
    exited: child.exited,
    async waitFor(pattern) {
      let isLate = false
      const cancel = overdue(patienceMs, () => {
        isLate = true
        wake()
      })
      try {
        for (;;) {
          const match = texts.output.match(pattern)
          if (match) return match
          if (isAtEnd || isLate) throw new Error(`${command[0]} never said ${pattern}:\n${texts.output}`)
          await changed.promise
        }
      } finally {
        cancel()
      }
    },
    signal: (name) => child.kill(name),
    async stop(signal = 'SIGTERM') {
      child.kill(signal)
      const insist = setTimeout(() => child.kill('SIGKILL'), stopMs)
      await child.exited
      clearTimeout(insist)
      await reading
    },
  }
}

export async function makeTemporaryDirectory(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'ringwire-test-'))
  return { path, remove: () => rm(path, { recursive: true, force: true }) }
}
