// Child processes: pinned to cores, awaited until they listen, stopped without leaving anything behind.
import { closeSync, openSync, readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import type { Subprocess } from 'bun'

const LISTENS_WITHIN_MS = 60_000
const STOPS_WITHIN_MS = 5_000

export interface Placement {
  /** The server's core, and those of the generators; null where nothing can be pinned. */
  serverCore: number | null
  generatorCores: number[]
  note: string
}

export function placement(): Placement {
  const cores = cpus().length
  if (Bun.which('taskset') === null) {
    return { serverCore: null, generatorCores: [], note: 'taskset is missing: nothing is pinned to a core' }
  }
  if (cores < 2) return { serverCore: null, generatorCores: [], note: 'one core only: nothing is pinned' }
  const generatorCores = Array.from({ length: cores - 1 }, (_, i) => i + 1)
  return { serverCore: 0, generatorCores, note: `server on core 0, generators from core 1 up, of ${cores}` }
}

export function pinned(command: string[], core: number | null): string[] {
  return core === null ? command : ['taskset', '-c', String(core), ...command]
}

export interface ServerProcess {
  name: string
  pid: number
  port: number
  core: number | null
  stop(): Promise<void>
}

export interface ServerCommand {
  name: string
  command: string[]
  env: Record<string, string>
  /** For a server that gets its port from the benchmark: the line that it prints on its standard output once it listens there. */
  listens?: { line: RegExp; port: number }
}

/** Starts a server and resolves when it prints the line with its address, or that it listens. */
export async function startServer(
  server: ServerCommand,
  core: number | null,
  logDirectory: string,
): Promise<ServerProcess> {
  const logFile = join(logDirectory, `${server.name}-${crypto.randomUUID()}.log`)
  const log = openSync(logFile, 'w')
  const child = Bun.spawn(pinned(server.command, core), {
    env: { ...process.env, ...server.env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: log,
  })
  closeSync(log)
  // Whatever ends this process ends the child too.
  const killNow = () => child.kill('SIGKILL')
  process.on('exit', killNow)
  const stop = async () => {
    await stopProcess(child)
    process.off('exit', killNow)
  }
  try {
    const port = await listeningPort(child, server)
    return { name: server.name, pid: child.pid, port, core, stop }
  } catch (error) {
    await stop()
    throw new Error(`${String(error)}\n${lastLines(logFile)}`)
  }
}

async function listeningPort(
  child: Subprocess<'ignore', 'pipe', number>,
  { name, listens }: ServerCommand,
): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const timer = setTimeout(() => reject(new Error(`${name} did not listen in time`)), LISTENS_WITHIN_MS)
  void readLines(child.stdout, (line) => {
    const port = /listens on https?:\/\/[^:]+:(\d+)/.exec(line)?.[1]
    if (listens?.line.test(line)) resolve(listens.port)
    else if (port !== undefined) resolve(Number(port))
  }).then(() => reject(new Error(`${name} ended before it listened`)))
  try {
    return await promise
  } finally {
    clearTimeout(timer)
  }
}

async function readLines(stream: ReadableStream<Uint8Array>, onLine: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) onLine(line)
  }
}

function lastLines(file: string): string {
  return readFileSync(file, 'utf8').split('\n').slice(-20).join('\n')
}

async function stopProcess(child: Subprocess): Promise<void> {
  child.kill('SIGTERM')
  const impatience = setTimeout(() => child.kill('SIGKILL'), STOPS_WITHIN_MS)
  await child.exited
  clearTimeout(impatience)
}
