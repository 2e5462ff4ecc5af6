import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type RunningProcess = {
  /** Everything written so far, both streams. */
  output(): string
  /** The first match in what was or will be written; fails when the process ends before it, or after ten seconds. */
  waitFor(pattern: RegExp): Promise<RegExpMatchArray>
  stop(signal?: NodeJS.Signals): Promise<void>
}

/** Starts a program and listens to what it says. Nothing of the tests' own environment but PATH and HOME reaches it. */
export function startProcess(command: string[], env: Record<string, string> = {}): RunningProcess {
  const child = Bun.spawn(command, {
    cwd: join(import.meta.dir, '..', '..', '..', '..'),
    env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  let output = ''
  let ended = false
  let changed = Promise.withResolvers<void>()
  const wake = () => {
    changed.resolve()
    changed = Promise.withResolvers()
  }
  const read = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder()
    for await (const bytes of stream) {
      output += decoder.decode(bytes, { stream: true })
      wake()
    }
  }
  const reading = Promise.all([read(child.stdout), read(child.stderr)]).then(() => {
    ended = true
    wake()
  })

  return {
    output: () => output,
    async waitFor(pattern) {
      const deadline = AbortSignal.timeout(10_000)
      deadline.addEventListener('abort', wake)
      for (;;) {
        const match = output.match(pattern)
        if (match) return match
        if (ended || deadline.aborted) throw new Error(`${command[0]} never said ${pattern}:\n${output}`)
        await changed.promise
      }
    },
    async stop(signal = 'SIGTERM') {
      child.kill(signal)
      const insist = setTimeout(() => child.kill('SIGKILL'), 5000)
      await child.exited
      clearTimeout(insist)
      await reading
    },
  }
}

export async function makeTemporaryDirectory(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'ringwire-demo-'))
  return { path, remove: () => rm(path, { recursive: true, force: true }) }
}
