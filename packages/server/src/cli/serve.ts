/** `ringwire serve`: from start to the signal that ends it. */
import type { Config } from '../config/config.ts'
import { localNetworks } from '../config/lan.ts'
import type { HeldLog } from '../observability/held.ts'
import type { Logger } from '../observability/logger.ts'
import { StoreError } from '../ports/store-error.ts'
import { exitCodes, visible } from './command.ts'
import { findPortHolder } from './port-holder.ts'
import { listenForStop, type StopSignalSource } from './stop-signal.ts'

export interface RunningService {
  start(): Promise<{ url: string }>
  /** `atOnce`: nothing is done that takes time. */
  stop(atOnce?: boolean): Promise<void>
}

export interface ServeOptions extends StopSignalSource {
  readonly config: Config
  readonly warnings: readonly string[]
  readonly logger: Logger
  readonly service: RunningService
  out(text: string): void
  err(text: string): void
  /** Ends the process at once. */
  exit(code: number): void
  /** Resolves when the process that started this one, and that it ends with, is gone. */
  readonly orphaned?: Promise<void> | undefined
  /** Holds log lines back until the address was printed; undefined where they are written at once. */
  readonly held?: HeldLog | undefined
  /** It listens, and has said so. */
  readonly onListening?: () => void
}

/** How long a process whose parent is gone may take to end, in ms: another one may be started for it. */
const orphanMs = 5_000

/** Runs the service until a signal stops it, and gives the exit code. */
export async function serve(options: ServeOptions): Promise<number> {
  const { logger, service } = options
  for (const warning of options.warnings) logger.warn({}, warning)
  const stop = listenForStop(options, options.exit)
  try {
    const url = await startOrSay(options)
    if (url === undefined) return exitCodes.failed
    logger.info({ url }, 'listening')
    options.out(listensText(url, options.config))
    options.held?.release()
    options.onListening?.()
    const ended = stop.first.then(async (signal) => {
      logger.info({ signal }, 'stopping')
      await service.stop()
      return exitCodes.done
    })
    const orphaned = options.orphaned?.then(() => endOrphaned(options))
    return await Promise.race(orphaned === undefined ? [ended] : [ended, orphaned])
  } finally {
    options.held?.release()
    stop.forget()
  }
}

/** Scripts wait for this on stdout: the first line is the URL. */
export function listensText(url: string, config: Config): string {
  const demo = config.demo ? `Open ${url}/demo/ in two browser tabs: sign in as a customer and as an agent.\n` : ''
  return `Ringwire listens on ${url}\n${config.demo === 'lan' ? lanText(url) : demo}`
}

/** The addresses for a phone, which people type there. */
function lanText(url: string): string {
  const { port } = new URL(url)
  const pages = localNetworks().addresses.map((address) => `  https://${address}:${port}/demo/\n`)
  return `On this machine and on a phone in the same network, open
${pages.join('')}and sign in as a customer and as an agent. This machine made the certificate: each browser warns once.
`
}

async function endOrphaned({ logger, service, exit }: ServeOptions): Promise<number> {
  logger.error({}, 'the process that started this one is gone: it ends')
  const patience = setTimeout(() => exit(exitCodes.failed), orphanMs)
  await service.stop(true)
  clearTimeout(patience)
  return exitCodes.failed
}

/** A start that fails for a reason of this machine (port taken, directory not writable) ends with one line. */
async function startOrSay(options: ServeOptions): Promise<string | undefined> {
  const { config, logger, service } = options
  try {
    return (await service.start()).url
  } catch (error) {
    logger.error({ error }, 'the service did not start')
    // The line below says the same to the person who watches.
    if (isOfThisMachine(config, error)) options.held?.drop()
    else options.held?.release()
    await service.stop().catch(() => {})
    options.err(didNotStart(config, error))
    return undefined
  }
}

function isOfThisMachine(config: Config, error: unknown): boolean {
  return error instanceof StoreError || listenProblem(config, error) !== undefined
}

export function didNotStart(config: Config, error: unknown): string {
  const reason = listenProblem(config, error) ?? (error instanceof Error ? error.message : String(error))
  return `Ringwire did not start on ${config.host}:${config.port}: ${reason}\n`
}

function portInUse(port: number): string {
  const holder = findPortHolder(port)
  const by = holder === undefined ? '' : ` by ${visible(holder.program)} (pid ${holder.pid})`
  return `port ${port} is in use${by}. Stop that process, or set RINGWIRE_PORT to another port (0: any free one).`
}

/** The runtime says each of these in two ways, of which one leaves out the port. */
function listenProblem({ host, port }: Config, error: unknown): string | undefined {
  if (!(error instanceof Error && 'syscall' in error && error.syscall === 'listen' && 'code' in error)) return undefined
  if (error.code === 'EADDRINUSE') return portInUse(port)
  if (error.code === 'EADDRNOTAVAIL')
    return `${host} is not an address of this machine. Set RINGWIRE_HOST to one, or to 0.0.0.0 for all.`
  if (error.code !== 'EACCES') return undefined
  return `this account may not listen on port ${port}. Set RINGWIRE_PORT to one above 1023.`
}
