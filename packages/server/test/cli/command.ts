/** Runs the command line as its own process, as an operator does. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { program } from '@ringwire/testkit/program'

export const launcher = new URL('../../bin/ringwire.mjs', import.meta.url).pathname
export const direct = [...program]
/** The Node that the machine has. */
export const throughNode = ['node', launcher]

export interface Ended {
  code: number
  out: string
  err: string
}

export interface Running {
  readonly pid: number
  /** The URL of a service that listens. */
  readonly url: string
  /** All that it has printed so far. */
  readonly out: () => string
  readonly err: () => string
  signal(name: NodeJS.Signals): void
  readonly ended: Promise<Ended>
}

export interface Box {
  readonly dataDir: string
  run(args: string, options?: { env?: Record<string, string>; program?: string[]; input?: string }): Promise<Ended>
  serve(options?: { args?: string[]; env?: Record<string, string>; program?: string[] }): Promise<Running>
  /** Ends what runs and removes the data directory. */
  clean(): Promise<void>
}

export function createBox(): Box {
  const dataDir = mkdtempSync(join(tmpdir(), 'ringwire-command-'))
  const alive = new Set<Bun.Subprocess<'ignore' | Buffer, 'pipe', 'pipe'>>()

  function spawn(program: string[], args: string[], env: Record<string, string> = {}, input?: string) {
    const child = Bun.spawn([...program, ...args], {
      env: { PATH: process.env.PATH ?? '', RINGWIRE_DATA_DIR: dataDir, RINGWIRE_PORT: '0', ...env },
      stdin: input === undefined ? 'ignore' : Buffer.from(input),
      stdout: 'pipe',
      stderr: 'pipe',
    })
    alive.add(child)
    const texts = { out: '', err: '' }
    const more = Promise.withResolvers<void>()
    const state = { more }
    const read = async (stream: ReadableStream<Uint8Array>, name: 'out' | 'err') => {
      const decoder = new TextDecoder()
      for await (const bytes of stream) {
        texts[name] += decoder.decode(bytes, { stream: true })
        state.more.resolve()
        state.more = Promise.withResolvers()
      }
    }
    const streams = Promise.all([read(child.stdout, 'out'), read(child.stderr, 'err')])
    const ended = (async () => {
      const code = await child.exited
      await streams
      alive.delete(child)
      state.more.resolve()
      return { code, ...texts }
    })()
    return { child, texts, ended, news: () => state.more.promise }
  }

  return {
    dataDir,
    run: (args, { env, program = direct, input } = {}) =>
      spawn(program, args.split(' ').filter(Boolean), env, input).ended,
    async serve({ args = ['serve'], env, program = direct } = {}) {
      const { child, texts, ended, news } = spawn(program, args, env)
      while (!texts.out.includes('\n')) {
        if (child.exitCode !== null) throw new Error(`the service did not start:\n${(await ended).err}`)
        await news()
      }
      const url = /^Ringwire listens on (\S+)\n/.exec(texts.out)?.[1]
      if (url === undefined) throw new Error(`no URL in ${texts.out}`)
      return {
        pid: child.pid,
        url,
        out: () => texts.out,
        err: () => texts.err,
        signal: (name) => child.kill(name),
        ended,
      }
    },
    async clean() {
      for (const child of alive) child.kill('SIGKILL')
      await Promise.all([...alive].map((child) => child.exited))
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}
