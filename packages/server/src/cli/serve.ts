/** `ringwire serve`: from start to the signal that ends it. */
import type { Config } from '../config.ts'
import type { Logger } from '../observability/logger.ts'
import { exitCodes } from './command.ts'

export interface RunningService {
  start(): Promise<{ url: string }>
  stop(): Promise<void>
}

export type StopSignal = 'SIGINT' | 'SIGTERM'

export interface ServeOptions {
  readonly config: Config
  readonly warnings: readonly string[]
  readonly logger: Logger
  readonly service: RunningService
  out(text: string): void
  err(text: string): void
  /** Calls the listener for each signal that asks to stop; gives what ends that. */
  onSignal(listener: (signal: StopSignal) => void): () => void
  /** Ends the process at once. */
  exit(code: number): void
  readonly monotonic: () => number
}

/** A terminal's Ctrl-C reaches this process and the one that started it, which passes it on: that is one signal. */
const sameSignalMs = 300
const signalNumbers = { SIGINT: 2, SIGTERM: 15 } as const

/** Runs the service until a signal stops it, and gives the exit code. */
export async function serve(options: ServeOptions): Promise<number> {
  const { config, logger, service } = options
  for (const warning of options.warnings) logger.warn({}, warning)
  const stopped = Promise.withResolvers<StopSignal>()
  let first: number | undefined
  const forget = options.onSignal((signal) => {
    const now = options.monotonic()
    if (first === undefined) {
      first = now
      stopped.resolve(signal)
    } else if (now - first > sameSignalMs) options.exit(128 + signalNumbers[signal])
  })
  try {
    const url = await startOrSay(options)
    if (url === undefined) return exitCodes.failed
    logger.info({ url }, 'listening')
    options.out(`Ringwire listens on ${url}\n`)
    if (config.demo) options.out(`Open ${url}/demo/ in two browser tabs: sign in as a customer and as an agent.\n`)
    const signal = await stopped.promise
    logger.info({ signal }, 'stopping')
    await service.stop()
    return exitCodes.done
  } finally {
    forget()
  }
}

/** A start that fails for a reason of this machine (port taken, directory not writable) ends with one line. */
async function startOrSay(options: ServeOptions): Promise<string | undefined> {
  const { config, logger, service } = options
  try {
    return (await service.start()).url
  } catch (error) {
    logger.error({ error }, 'the service did not start')
    const reason = error instanceof Error ? error.message : String(error)
    await service.stop().catch(() => {})
    options.err(`Ringwire did not start on ${config.host}:${config.port}: ${reason}\n`)
    return undefined
  }
}
