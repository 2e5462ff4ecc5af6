import { expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { loadConfig } from '../config/config.ts'
import { createLogger } from '../observability/logger.ts'
import type { StopSignal } from './stop-signal.ts'
import { runWorkers, type WorkerProcess, type WorkersOptions } from './workers.ts'

const ask = () => Promise.reject(new Error('nobody asks'))

/** No real worker does these things on request; the rest is shown with processes in test/workers. */
function setUp(given: Partial<WorkersOptions> = {}) {
  const loaded = loadConfig({
    DATABASE_URL: 'postgres://127.0.0.1/calls',
    REDIS_URL: 'redis://127.0.0.1',
    RINGWIRE_JWT_SECRETS: `k:${'A'.repeat(43)}`,
    RINGWIRE_WORKERS: '3',
    RINGWIRE_NODE_ID: 'm',
  })
  if (!loaded.ok) throw new Error(loaded.problems.join())
  const seen = { out: '', err: '', log: '', started: [] as number[], signals: [] as string[] }
  let signal: (name: StopSignal) => void = () => {}
  const options: WorkersOptions = {
    config: loaded.config,
    warnings: [],
    logger: createLogger({
      level: 'info',
      destination: {
        write(line) {
          seen.log += line
        },
      },
    }),
    platform: 'linux',
    claimPort() {},
    onHangup() {},
    startWorker(worker): WorkerProcess {
      seen.started.push(worker)
      const ended = Promise.withResolvers<number | string>()
      return {
        listening: Promise.resolve('http://127.0.0.1:8080'),
        ended: ended.promise,
        signAt: () => performance.now(),
        ask,
        signal(name) {
          seen.signals.push(`${worker} ${name}`)
          ended.resolve(0)
        },
      }
    },
    openForOperators: () => ({ joined() {}, stop() {} }),
    out(text) {
      seen.out += text
    },
    err(text) {
      seen.err += text
    },
    onSignal(listener) {
      signal = listener
      return () => {}
    },
    exit() {},
    monotonic: () => performance.now(),
    ...given,
  }
  return { options, seen, send: (name: StopSignal) => signal(name) }
}

test('where processes cannot share a port, the start is refused with one line', async () => {
  for (const platform of ['darwin', 'win32']) {
    const { options, seen } = setUp({ platform })
    expect(await runWorkers(options)).toBe(1)
    expect(seen).toMatchObject({ out: '', started: [] })
    expect(seen.err).toMatch(/^Several processes only share a port on Linux: [^\n]+\n$/)
  }
})

test('one that does not start ends the others, and the start fails', async () => {
  const { options, seen } = setUp()
  const startWorker = (worker: number, port: number): WorkerProcess =>
    worker === 3
      ? { listening: Promise.resolve(undefined), ended: Promise.resolve(1), signAt: () => 0, signal() {}, ask }
      : options.startWorker(worker, port)
  expect(await runWorkers({ ...options, startWorker })).toBe(1)
  expect(seen).toMatchObject({ out: '', started: [1, 2], signals: ['1 SIGTERM', '2 SIGTERM'] })
})

test('one that does not end in order shows in the exit code', async () => {
  const { options, seen, send } = setUp()
  const ended = Promise.withResolvers<number | string>()
  const startWorker = (worker: number, port: number): WorkerProcess =>
    worker === 2
      ? {
          listening: Promise.resolve('http://127.0.0.1:8080'),
          ended: ended.promise,
          signAt: () => performance.now(),
          ask,
          signal: () => ended.resolve(1),
        }
      : options.startWorker(worker, port)
  const listens = Promise.withResolvers<void>()
  const running = runWorkers({
    ...options,
    startWorker,
    out(text) {
      options.out(text)
      listens.resolve()
    },
  })
  await listens.promise
  expect(seen.out).toBe('Ringwire listens on http://127.0.0.1:8080\n')
  send('SIGTERM')
  expect(await running).toBe(1)
  expect(seen.signals).toEqual(['1 SIGTERM', '3 SIGTERM'])
})

test('when the launcher is killed it ends at once; the workers follow their pipes', async () => {
  const orphaned = Promise.withResolvers<void>()
  const exited = Promise.withResolvers<number>()
  const { options, seen } = setUp({ orphaned: orphaned.promise, exit: exited.resolve, claimPort() {} })
  void runWorkers(options)
  orphaned.resolve()
  expect(await exited.promise).toBe(1)
  expect(seen.log).toContain('the process that started this one is gone')
})

test('a machine that stood still: workers have their whole time to give a sign again', async () => {
  const ended = Promise.withResolvers<number | string>()
  const first = Promise.withResolvers<void>()
  let looks = 0
  let still = 0
  const { options, seen, send } = setUp({
    monotonic() {
      looks++
      return performance.now() + still
    },
  })
  const startedAt = performance.now()
  const startWorker = (worker: number, port: number): WorkerProcess => ({
    ...options.startWorker(worker, port),
    // Its last one was given before.
    signAt: () => startedAt,
    signal(name) {
      seen.signals.push(`${worker} ${name}`)
      ended.resolve(name)
    },
    ended: ended.promise,
  })
  const running = runWorkers({ ...options, startWorker, out: () => first.resolve() })
  await first.promise
  const from = looks
  still = 60_000
  // The look that finds that time was lost, and three that come a second after another.
  await until('it has looked four times', () => looks >= from + 4)
  expect(seen.signals).toEqual([])
  send('SIGTERM')
  await running
})
