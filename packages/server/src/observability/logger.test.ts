import { expect, test } from 'bun:test'
import { StoreError } from '../ports/store-error.ts'
import { createLogger, type LogFields, type LogLevel } from './logger.ts'

function setUp(level: LogLevel = 'debug') {
  const lines: string[] = []
  const logger = createLogger({ level, destination: { write: (line) => void lines.push(line) } })
  return { logger, lines, read: () => lines.map((line) => JSON.parse(line)) }
}

const token = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
const sdp = 'v=0\r\no=- 46117317 2 IN IP4 127.0.0.1\r\ns=-\r\na=ice-pwd:hunter2\r\n'
const candidate = 'candidate:842163049 1 udp 1677729535 203.0.113.7 3478 typ srflx raddr 10.0.0.9'

test('one JSON line each, with level, time and message', () => {
  const { logger, lines, read } = setUp()
  logger.info({ callUuid: 'c', status: 'ended', count: 2 }, 'call ended')
  expect(lines[0]).toEndWith('\n')
  expect(read()).toEqual([
    {
      level: 'info',
      time: expect.stringMatching(/^\d{4}-.*Z$/),
      callUuid: 'c',
      status: 'ended',
      count: 2,
      message: 'call ended',
    },
  ])
})

test('levels below the chosen one are silent', () => {
  const { logger, read } = setUp('warn')
  logger.debug({}, 'a')
  logger.info({}, 'b')
  logger.warn({}, 'c')
  logger.error({}, 'd')
  expect(read().map(({ message }) => message)).toEqual(['c', 'd'])
  const silent = setUp('silent')
  silent.logger.error({}, 'e')
  expect(silent.lines).toEqual([])
})

test('a child adds its fields to every line', () => {
  const { logger, read } = setUp()
  logger.child({ nodeId: 'n' }).info({ product: 'shop' }, 'x')
  expect(read()[0]).toMatchObject({ nodeId: 'n', product: 'shop' })
})

test('[LOG1] a field that the log does not know is dropped, whatever it holds', () => {
  const { logger, lines } = setUp()
  const smuggled = {
    headers: { authorization: `Bearer ${token}` },
    token,
    secret: 'hunter2',
    sdp: { type: 'offer', sdp },
    metadata: { a: 'hunter2' },
    toString: 'hunter2',
    __proto__: { code: 'hunter2' },
    code: 'OK',
  } as LogFields
  logger.info(smuggled, 'x')
  logger.child(smuggled).error(smuggled, 'y')
  expect(lines.join('')).not.toContain('hunter2')
  expect(lines.join('')).not.toContain(token)
  expect(lines.join('')).toContain('"code":"OK"')
})

test('[LOG1] objects in known fields are dropped: only text and numbers are printed', () => {
  const { logger, read } = setUp()
  logger.info({ code: { sdp } as unknown as string, count: [1] as unknown as number }, 'x')
  expect(Object.keys(read()[0]).sort()).toEqual(['level', 'message', 'time'])
})

test('[LOG1] tokens, SDP, candidates and query strings are cut out of texts that carry them', () => {
  const { logger, lines } = setUp()
  const noisy = `bad ${token} and http://x/v1/ws?token=abc123 `
  logger.warn({ reason: noisy, url: `ws://x/v1/ws?jwt=${token}`, path: '/v1/calls/history?cursor=abc123' }, noisy)
  logger.warn({ reason: sdp, code: candidate }, `offer was ${sdp}`)
  logger.error({ error: new Error(`${noisy}${sdp}`, { cause: new Error(`${token} ${candidate}`) }) }, 'x')
  const printed = lines.join('')
  for (const secret of [token, 'hunter2', 'abc123', '203.0.113.7', '10.0.0.9']) expect(printed).not.toContain(secret)
})

test('[LOG1] of an error: name, message, code and place, and nothing that hangs on it', () => {
  const { logger, read } = setUp()
  const error = Object.assign(new StoreError('unavailable', 'the disk is full'), {
    code: 'SQLITE_FULL',
    request: { headers: { secret: 'hunter2' } },
  })
  logger.error({ error }, 'x')
  logger.error({ error: { secret: 'hunter2' } }, 'y')
  logger.error({ error: 'hunter2' }, 'z')
  expect(read()[0].error).toEqual({
    name: 'StoreError',
    message: 'the disk is full',
    code: 'SQLITE_FULL',
    at: expect.stringContaining('logger.test.ts'),
  })
  expect(JSON.stringify(read())).not.toContain('hunter2')
})

test('a text that is too long is cut', () => {
  const { logger, lines } = setUp()
  logger.info({ reason: 'x'.repeat(1_000_000) }, 'y'.repeat(1_000_000))
  expect(lines[0]?.length).toBeLessThan(3000)
})

test('what is logged cannot forge a line', () => {
  const { logger, lines } = setUp()
  logger.info({ reason: 'a\n{"level":"error"}' }, 'x\ny')
  expect(lines.join('').split('\n')).toHaveLength(2)
})
