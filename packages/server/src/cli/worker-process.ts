import { workerId } from '../ports/node-name.ts'
import { createQuestions, type Said } from './questions.ts'
import type { WorkerProcess } from './workers.ts'

/** How often a worker gives a sign of life, in ms. */
export const signMs = 1_000

/** Only for this program: no slip of the finger leads from an option that people type to this one. */
export const workerOption = '--as-worker-of-this-node'
/** What bin/launch.mjs adds: it holds the other end of this descriptor. */
export const launchedOption = '--as-child-of-the-launcher'
export const launcherDescriptor = 3

export interface WorkerStart {
  /** The program and its first arguments, up to the command. */
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly nodeId: string
  readonly workers: number
  readonly worker: number
  readonly port: number
}

/**
 * Starts the service as a worker. Its log goes where that of this process goes; its stdin is a pipe that nothing is
 * written to: it ends with this process, whatever ends that.
 */
export function startWorkerProcess({ command, env, nodeId, workers, worker, port }: WorkerStart): WorkerProcess {
  const child = Bun.spawn([...command, 'serve', workerOption, String(worker)], {
    env: {
      ...env,
      RINGWIRE_NODE_ID: workerId(nodeId, worker),
      RINGWIRE_PORT: String(port),
      RINGWIRE_WORKERS: String(workers),
    },
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
    serialization: 'json',
    ipc: (said: Said) => questions.said(said),
  })
  const ended = child.exited.then((code) => child.signalCode ?? code)
  const questions = createQuestions((asked) => child.send(asked), ended)
  let signAt = performance.now()
  const onSign = () => {
    signAt = performance.now()
  }
  return {
    listening: readUrl(child.stdout, onSign),
    signAt: () => signAt,
    ended,
    ask: questions.ask,
    signal: (name) => child.kill(name),
  }
}

/** Reads to the end, so that the worker never waits for a reader; resolves with the URL of the first line. */
function readUrl(stream: ReadableStream<Uint8Array>, onSign: () => void): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  const read = async () => {
    const decoder = new TextDecoder()
    let text = ''
    for await (const bytes of stream) {
      onSign()
      if (text.includes('\n')) continue
      text += decoder.decode(bytes, { stream: true })
      if (text.includes('\n')) resolve(/^Ringwire listens on (\S+)\n/.exec(text)?.[1])
    }
  }
  void read().finally(() => resolve(undefined))
  return promise
}

/** Says on stdout, which the process that started this worker reads, that its event loop turns. */
export function giveSigns(out: (text: string) => void): void {
  setInterval(() => out('.'), signMs).unref()
}

/** Resolves when the process at the other end of the pipe is gone, whatever ended it. */
export async function endOfParent(pipe: ReadableStream<Uint8Array>): Promise<void> {
  for await (const _ of pipe) {
    // Nothing is written to it.
  }
}
