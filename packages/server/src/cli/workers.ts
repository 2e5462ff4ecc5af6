/** `ringwire serve --workers N`: the process that starts the workers, starts them again, and ends with them. */
import type { Config } from '../config/config.ts'
import type { Logger } from '../observability/logger.ts'
import type { AskedWorker, Machine } from '../observability/machine.ts'
import { workerId } from '../ports/node-name.ts'
import { exitCodes } from './command.ts'
import { didNotStart, listensText } from './serve.ts'
import { listenForStop, type StopSignal, type StopSignalSource } from './stop-signal.ts'

/** One worker: the service in a process of its own. */
export interface WorkerProcess extends AskedWorker {
  /** Resolves with its URL when it listens; undefined where it ended before that. */
  readonly listening: Promise<string | undefined>
  /** Resolves when it is gone, with its exit code, or the name of the signal that ended it. */
  readonly ended: Promise<number | string>
  /** When it gave its last sign of life, on the clock of performance.now(); a worker that listens gives one a second. */
  signAt(): number
  signal(name: StopSignal | 'SIGHUP' | 'SIGKILL'): void
}

export interface WorkersOptions extends StopSignalSource {
  readonly config: Config
  readonly warnings: readonly string[]
  readonly logger: Logger
  readonly platform: string
  /** Throws where somebody else has the port. */
  claimPort(host: string, port: number): void
  startWorker(worker: number, port: number): WorkerProcess
  /** Calls the listener for each SIGHUP. */
  onHangup(listener: () => void): void
  /** Opens what operators ask; throws where that cannot be. */
  openForOperators(): Pick<Machine, 'joined' | 'stop'>
  out(text: string): void
  err(text: string): void
  /** Ends this process at once. */
  exit(code: number): void
  /** Resolves when the process that started this one, and that it ends with, is gone. */
  readonly orphaned?: Promise<void> | undefined
}

/** A worker that lived for this time was well: it is started again without a pause. All in ms. */
const steadyMs = 10_000
/** A signal to all, as Ctrl-C is, may end a worker before this process has heard of it. */
const settleMs = 100
/** A worker that listens and gave no sign for this time does not serve: others took it for dead long before. */
const hungMs = 10_000
const watchMs = 1_000
const firstPauseMs = 250
const longestPauseMs = 10_000

/** Runs the workers until a signal stops them, and gives the exit code. */
export async function runWorkers(options: WorkersOptions): Promise<number> {
  const { config, logger } = options
  if (options.platform !== 'linux') {
    options.err('Several processes only share a port on Linux: RINGWIRE_WORKERS has to be 1 on this machine.\n')
    return exitCodes.failed
  }
  for (const warning of options.warnings) logger.warn({}, warning)
  let machine: Pick<Machine, 'joined' | 'stop'> | undefined
  const crew = createCrew(options, (worker) => machine?.joined(worker))
  const stop = listenForStop(options, (code) => {
    crew.signalAll('SIGKILL')
    options.exit(code)
  })
  // Workers look for a renewed certificate then [TLS1]. One that is just starting reads it, and would end by the signal.
  options.onHangup(crew.hangUp)
  void options.orphaned?.then(() => {
    logger.error({}, 'the process that started this one is gone: it ends')
    options.exit(exitCodes.failed)
  })
  void stop.first.then((signal) => {
    logger.info({ signal }, 'stopping')
    crew.stop()
  })
  try {
    if (config.port !== 0) options.claimPort(config.host, config.port)
    machine = options.openForOperators()
    const started = await crew.start()
    if (started === undefined) return (await crew.giveUp()) ? exitCodes.done : exitCodes.failed
    logger.info({ url: started.url, count: config.workers }, 'all workers listen')
    options.out(listensText(started.url, config))
    const inOrder = await Promise.all(started.ends)
    return inOrder.every(Boolean) ? exitCodes.done : exitCodes.failed
  } catch (error) {
    options.err(didNotStart(config, error))
    return exitCodes.failed
  } finally {
    machine?.stop()
    stop.forget()
  }
}

/** The workers: started together, started again each for itself, told to stop together. */
function createCrew(options: WorkersOptions, onListening: (one: WorkerProcess) => void) {
  const { config, logger, monotonic } = options
  const { launch, gone, watchSilence, endHung, hangUp, signalAll, allEnded } = createRunning(options, onListening)
  const stopping = Promise.withResolvers<void>()
  let isStopping = false
  let watcher: Timer | undefined

  /** Starts a worker again whenever it ends; gives whether it ended in order, on request. */
  async function keep(worker: number, first: WorkerProcess, port: number): Promise<boolean> {
    let since = monotonic()
    let early = 0
    for (let current = first; ; current = launch(worker, port)) {
      const end = await current.ended
      gone(worker)
      if (!isStopping) await Promise.race([Bun.sleep(settleMs), stopping.promise])
      if (isStopping) return end === 0 || ((await current.listening) === undefined && end === 'SIGTERM')
      early = monotonic() - since < steadyMs ? early + 1 : 0
      const durationMs = pauseAfter(early)
      const node = workerId(config.nodeId, worker)
      logger.error({ node, reason: String(end), attempt: early, durationMs }, 'a worker ended: it is started again')
      await Promise.race([Bun.sleep(durationMs), stopping.promise])
      if (isStopping) return true
      since = monotonic()
    }
  }

  return {
    signalAll,
    hangUp,
    /**
     * Resolves when all listen; undefined where one does not. The first one starts before the others: it brings the
     * schema up to date, and knows the port if any free one will do.
     */
    async start(): Promise<{ url: string; ends: Promise<boolean>[] } | undefined> {
      const first = launch(1, config.port)
      const url = await first.listening
      if (url === undefined || isStopping) return undefined
      const port = Number(new URL(url).port || config.port)
      const others = Array.from({ length: config.workers - 1 }, (_, i) => [i + 2, launch(i + 2, port)] as const)
      const urls = await Promise.all(others.map(([, worker]) => worker.listening))
      if (urls.includes(undefined) || isStopping) return undefined
      watchSilence()
      watcher = setInterval(endHung, watchMs)
      return { url, ends: [[1, first] as const, ...others].map(([worker, process]) => keep(worker, process, port)) }
    },
    stop(): void {
      isStopping = true
      clearInterval(watcher)
      stopping.resolve()
      signalAll('SIGTERM')
    },
    /** Ends the started processes; gives whether a signal wanted that. */
    async giveUp(): Promise<boolean> {
      // A second signal would end them at once.
      if (!isStopping) signalAll('SIGTERM')
      await allEnded()
      return isStopping
    },
  }
}

/** The workers that run, and which of them listen. */
function createRunning(
  { config, logger, monotonic, startWorker }: WorkersOptions,
  onListening: (one: WorkerProcess) => void,
) {
  const running = new Map<number, WorkerProcess>()
  const listening = new Set<number>()
  const silence = createSilence(monotonic)

  function launch(worker: number, port: number): WorkerProcess {
    const launched = startWorker(worker, port)
    running.set(worker, launched)
    listening.delete(worker)
    void launched.listening.then((url) => {
      if (url === undefined || running.get(worker) !== launched) return
      listening.add(worker)
      onListening(launched)
    })
    return launched
  }

  /** Connections would wait at one that hangs: the port is its own as well. */
  function endHung(): void {
    silence.look()
    for (const [worker, { signAt, signal }] of running) {
      if (!listening.has(worker) || silence.since(signAt()) < hungMs) continue
      listening.delete(worker)
      logger.error({ node: workerId(config.nodeId, worker) }, 'a worker gives no sign of life: it is ended')
      signal('SIGKILL')
    }
  }

  return {
    launch,
    gone: (worker: number) => running.delete(worker),
    endHung,
    watchSilence: silence.begin,
    hangUp(): void {
      for (const worker of listening) running.get(worker)?.signal('SIGHUP')
    },
    signalAll(name: StopSignal | 'SIGKILL'): void {
      for (const worker of running.values()) worker.signal(name)
    },
    allEnded: () => Promise.all([...running.values()].map(({ ended }) => ended)),
  }
}

/** Milliseconds until a worker is started again that ended early this many times in a row. */
function pauseAfter(early: number): number {
  return early === 0 ? 0 : Math.min(longestPauseMs, firstPauseMs * 2 ** (early - 1))
}

/** How long workers were silent. While this process stood still nobody was. */
function createSilence(monotonic: () => number) {
  let lookedAt = monotonic()
  /** When this process went on after it stood still: the machine did, perhaps, and its workers have to go on first. */
  let awakeAt = Number.NEGATIVE_INFINITY
  return {
    begin(): void {
      lookedAt = monotonic()
    },
    look(): void {
      const now = monotonic()
      if (now - lookedAt > 2 * watchMs) awakeAt = now
      lookedAt = now
    },
    /** Milliseconds between the last sign and the last look. */
    since: (signAt: number) => lookedAt - Math.max(signAt, awakeAt),
  }
}
