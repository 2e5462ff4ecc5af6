/** Where the process begins: the only reader of the environment, the arguments and the signals. */
import description from '../package.json' with { type: 'json' }
import { listenForAdmin } from './admin.ts'
import { backUp, checkStores, countersOfProcess, migrate, openStore } from './backend.ts'
import { claimPort } from './claim-port.ts'
import type { Outside, StartedBy } from './cli/command.ts'
import { openLineConsole } from './cli/line-console.ts'
import { runCommandLine } from './cli/program.ts'
import { answerQuestions } from './cli/questions.ts'
import { serve } from './cli/serve.ts'
import type { StopSignal } from './cli/stop-signal.ts'
import { createTerminal } from './cli/terminal.ts'
import { endOfParent, giveSigns, launcherDescriptor, startWorkerProcess } from './cli/worker-process.ts'
import { runWorkers } from './cli/workers.ts'
import { type Config, describeConfig } from './config/config.ts'
import { isExecutable } from './config/package-root.ts'
import { ownDescriptors } from './observability/descriptors.ts'
import { holdLines } from './observability/held.ts'
import { createJournal } from './observability/journal.ts'
import { createLogger, createStderr, type Logger } from './observability/logger.ts'
import { createMachine, type Machine } from './observability/machine.ts'
import { createMetrics, nobody } from './observability/metrics.ts'
import { processFamilies } from './observability/process-metrics.ts'
import { nodeOfWorker } from './ports/node-name.ts'
import { createServer } from './server.ts'

const out = (text: string) => void process.stdout.write(text)
const err = (text: string) => void process.stderr.write(text)
const isTerminal = process.stdout.isTTY === true
const terminal = createTerminal(isTerminal, process.env)
const errorTerminal = createTerminal(process.stderr.isTTY === true, process.env)

function openConsole(words: readonly string[]) {
  const shown = isTerminal ? terminal : undefined
  return openLineConsole({
    ...{ input: process.stdin, output: process.stdout, terminal: shown, words },
    ...{ out, err },
  })
}

const surroundings: Outside = {
  env: process.env,
  now: () => Date.now(),
  out,
  err,
  readInput() {
    // A person at the keyboard has to know that the command waits for input.
    if (process.stdin.isTTY) process.stderr.write('Paste it, then Enter and Ctrl-D.\n')
    return Bun.stdin.text()
  },
  terminal,
  errorTerminal,
  async ask(question) {
    if (process.stdin.isTTY !== true || !isTerminal) return undefined
    const console = openConsole([])
    const line = await console.nextLine(question)
    console.close()
    return line ?? ''
  },
  openConsole,
  stopped: () => new Promise((resolve) => onSignal(resolve)),
  openStore,
  checkStores,
  backUp,
  migrate,
  serve: runService,
}

async function runService(config: Config, warnings: readonly string[], startedBy: StartedBy): Promise<number> {
  const { worker } = startedBy
  // The demo is started by a person: its address comes before the log.
  const held = config.demo === false ? undefined : holdLines(createStderr(), heldMs)
  const logger = createLogger({
    level: config.logLevel,
    participants: config.logParticipants,
    destination: held ?? createStderr(),
  }).child({ nodeId: config.nodeId })
  for (const kind of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(kind, (error) => {
      logger.error({ error }, 'a bug: the process ends')
      held?.release()
      process.exit(1)
    })
  }
  const surrounded = {
    config,
    warnings,
    logger,
    out: surroundings.out,
    err: surroundings.err,
    held: held && { ...held, release: () => afterOutput(held.release) },
    onSignal,
    exit: (code: number) => process.exit(code),
    monotonic: () => performance.now(),
    orphaned: endOfStarter(startedBy),
  }
  if (worker === undefined && config.workers > 1) {
    const { nodeId, workers } = config
    const start = {
      command: isExecutable ? [process.execPath] : [process.execPath, Bun.main],
      env: process.env,
      nodeId,
      workers,
    }
    const startWorker = (number: number, port: number) => startWorkerProcess({ ...start, worker: number, port })
    return runWorkers({
      ...surrounded,
      platform: process.platform,
      claimPort,
      startWorker,
      onHangup: (listener) => void process.on('SIGHUP', listener),
      openForOperators: () => openForOperators(config, logger),
    })
  }
  const node = worker === undefined ? undefined : nodeOfWorker(config.nodeId, worker)
  const service = createServer({
    config,
    logger,
    settings,
    worker: node === undefined ? undefined : { node, report: answerQuestions },
  })
  process.on('SIGHUP', service.renewTls)
  const onListening = () => {
    if (worker !== undefined) giveSigns(surroundings.out)
  }
  return serve({ ...surrounded, service, onListening })
}

/** What this process was started with, without secrets. */
const settings = () => describeConfig(process.env)

/** How long the log waits for the address, in ms. */
const heldMs = 5_000

/** Standard output and the log may be one pipe, and only the log is written at once. */
function afterOutput(action: () => void): void {
  process.stdout.write('', () => action())
}

/** The listener for operators of a machine with several workers: this process tells of all of them [ADM1]. */
function openForOperators(config: Config, logger: Logger): Pick<Machine, 'joined' | 'stop'> {
  if (config.adminPort === null) return { joined() {}, stop() {} }
  const meter = createMetrics({ node: config.nodeId, version: description.version, stores: [] })
  const journal = createJournal({ logger, isDebug: config.logLevel === 'debug', now: () => performance.now(), meter })
  const descriptors = ownDescriptors()
  const ownCounts = () => [...meter.families(nobody), ...processFamilies(descriptors)]
  const machine = createMachine({ workers: config.workers, ownCounts })
  const admin = listenForAdmin({
    ...{ config, journal, settings },
    status: machine.status,
    counters: countersOfProcess(),
  })
  logger.info({ url: admin?.url }, 'listening for operators')
  return {
    joined: machine.joined,
    stop() {
      machine.stop()
      void admin?.stop()
    },
  }
}

function endOfStarter({ worker, isLaunched }: StartedBy): Promise<void> | undefined {
  if (worker !== undefined) return endOfParent(Bun.stdin.stream())
  return isLaunched ? endOfParent(Bun.file(launcherDescriptor).stream()) : undefined
}

function onSignal(listener: (signal: StopSignal) => void): () => void {
  const signals: StopSignal[] = ['SIGINT', 'SIGTERM']
  for (const signal of signals) process.on(signal, listener)
  return () => {
    for (const signal of signals) process.off(signal, listener)
  }
}

/** Output to a pipe may still wait in this process. A reader that is gone (`| head`) waits for nothing. */
async function finish(stream: NodeJS.WriteStream): Promise<void> {
  await new Promise<void>((resolve) => stream.end(() => resolve()))
}

const streams = [process.stdout, process.stderr]
for (const stream of streams) stream.on('error', () => {})
const exitCode = await runCommandLine(process.argv.slice(2), surroundings)
await Promise.all(streams.map(finish))
process.exit(exitCode)
