import { expect, test } from 'bun:test'
import { type Config, loadConfig } from '../config/config.ts'
import { createLogger } from '../observability/logger.ts'
import { type RunningService, type ServeOptions, serve } from './serve.ts'
import type { StopSignal } from './stop-signal.ts'

function setUp(service: Partial<RunningService> = {}, env: Record<string, string> = {}) {
  const loaded = loadConfig(env)
  if (!loaded.ok) throw new Error(loaded.problems.join())
  const config: Config = loaded.config
  const seen = { out: '', err: '', log: '', stops: 0, exits: [] as number[], now: 0, listening: false }
  let signal: (name: StopSignal) => void = () => {}
  const started = Promise.withResolvers<void>()
  const write = (line: string) => {
    seen.log += line
  }
  const options: ServeOptions = {
    config,
    warnings: [],
    logger: createLogger({ level: 'info', destination: { write } }),
    service: {
      start: async () => ({ url: 'http://127.0.0.1:1' }),
      stop: async () => {
        seen.stops++
      },
      ...service,
    },
    out: (text) => {
      seen.out += text
      started.resolve()
    },
    err: (text) => {
      seen.err += text
    },
    onSignal(listener) {
      signal = listener
      seen.listening = true
      return () => {
        seen.listening = false
      }
    },
    exit: (code) => void seen.exits.push(code),
    monotonic: () => seen.now,
  }
  return { options, seen, started: started.promise, send: (name: StopSignal) => signal(name) }
}

test('prints one line with the URL, and a signal stops it with 0', async () => {
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    const { options, seen, started, send } = setUp()
    const running = serve(options)
    await started
    expect(seen.out).toBe('Ringwire listens on http://127.0.0.1:1\n')
    expect(seen.stops).toBe(0)
    send(name)
    expect(await running).toBe(0)
    expect(seen).toMatchObject({ stops: 1, exits: [], listening: false })
  }
})

test('a signal that comes before it listens still stops it', async () => {
  const starting = Promise.withResolvers<{ url: string }>()
  const { options, seen, send } = setUp({ start: () => starting.promise })
  const running = serve(options)
  send('SIGTERM')
  starting.resolve({ url: 'http://127.0.0.1:1' })
  expect(await running).toBe(0)
  expect(seen.stops).toBe(1)
})

test('a second signal ends the process at once; the echo of the first does not', async () => {
  const { options, seen, started, send } = setUp({ stop: () => new Promise(() => {}) })
  void serve(options)
  await started
  seen.now = 1000
  send('SIGINT')
  // What started this process passes on what the terminal has sent here too.
  seen.now = 1100
  send('SIGINT')
  expect(seen.exits).toEqual([])
  seen.now = 1400
  send('SIGINT')
  expect(seen.exits).toEqual([130])
  send('SIGTERM')
  expect(seen.exits).toEqual([130, 143])
})

test('a start that fails ends with 1 and one line, and leaves nothing open', async () => {
  const { options, seen } = setUp({
    start: async () => {
      throw new Error('the port is taken')
    },
  })
  expect(await serve(options)).toBe(1)
  expect(seen).toMatchObject({
    out: '',
    err: 'Ringwire did not start on 127.0.0.1:8080: the port is taken\n',
    stops: 1,
    listening: false,
  })
})

test('the demo says what to open', async () => {
  const { options, seen, started, send } = setUp({}, { RINGWIRE_DEMO: '1' })
  const running = serve(options)
  await started
  expect(seen.out.split('\n')[1]).toContain('http://127.0.0.1:1/demo/')
  send('SIGTERM')
  await running
})

test('warnings of the configuration are logged', async () => {
  const { options, seen, started, send } = setUp()
  const running = serve({ ...options, warnings: ['RINGWIRE_X is not a setting of Ringwire; it is ignored'] })
  await started
  expect(JSON.parse(seen.log.split('\n')[0] ?? '')).toMatchObject({
    level: 'warn',
    message: expect.stringContaining('RINGWIRE_X'),
  })
  send('SIGTERM')
  await running
})
