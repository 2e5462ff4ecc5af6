/**
 * The log: JSON lines on stderr. A list says which fields may be logged [LOG1]: a field that `LogFields` does not name is
 * dropped, whatever it holds, and text loses everything that looks like a token or an SDP.
 *
 *   const logger = createLogger({ level: 'info' })
 *   logger.info({ callUuid, status }, 'call ended')
 *   logger.child({ nodeId }).error({ error }, 'store failed')
 */
import { createHash } from 'node:crypto'
import { writeSync } from 'node:fs'
import pino from 'pino'

/** Every field that the log knows, and what it holds. `path` has no query string; `error` shows name, message and place. */
const fieldKinds = {
  nodeId: 'text',
  node: 'text',
  url: 'text',
  address: 'text',
  method: 'text',
  path: 'text',
  code: 'text',
  product: 'text',
  keyId: 'text',
  kid: 'text',
  store: 'text',
  participant: 'participant',
  caller: 'participant',
  callee: 'participant',
  sessionId: 'text',
  callUuid: 'text',
  event: 'text',
  status: 'textOrNumber',
  reason: 'text',
  endReason: 'text',
  cause: 'text',
  limit: 'text',
  endpoint: 'text',
  delivery: 'text',
  signal: 'text',
  setting: 'text',
  state: 'text',
  version: 'textOrNumber',
  closeCode: 'number',
  count: 'number',
  sockets: 'number',
  calls: 'number',
  durationMs: 'number',
  ringMs: 'number',
  connectMs: 'number',
  talkMs: 'number',
  seconds: 'number',
  attempt: 'number',
  error: 'error',
} as const

interface Kinds {
  text: string
  number: number
  textOrNumber: string | number
  participant: { readonly product: string; readonly role: string; readonly userId: string }
  error: unknown
}

export type LogFields = { readonly [F in keyof typeof fieldKinds]?: Kinds[(typeof fieldKinds)[F]] | undefined }

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

export interface Logger {
  debug(fields: LogFields, message: string): void
  info(fields: LogFields, message: string): void
  warn(fields: LogFields, message: string): void
  error(fields: LogFields, message: string): void
  /** A logger that adds these fields to every line. */
  child(fields: LogFields): Logger
}

export interface LogDestination {
  write(line: string): void
}

export interface LoggerOptions {
  readonly level: LogLevel
  /** Whether participants are named; else a hash stands for each. */
  readonly participants?: boolean
  readonly destination?: LogDestination
}

export function createLogger(options: LoggerOptions): Logger {
  const { destination = createStderr(), participants = false } = options
  const root = pino(
    {
      level: options.level,
      base: null,
      messageKey: 'message',
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination,
  )
  return wrap(root, participants)
}

const busyPauses = 20
const busyPauseMs = 5
const pause = new Int32Array(new SharedArrayBuffer(4))

/** A line that cannot be written, because the disk is full or nobody reads, is lost. Nothing else is. */
export function createStderr(): LogDestination {
  /** Nobody reads: until a line is through again, none is waited for. */
  let isStuck = false
  return {
    write(line) {
      let rest: Uint8Array = Buffer.from(line)
      for (let pauses = isStuck ? busyPauses : 0; rest.length > 0; ) {
        try {
          rest = rest.subarray(writeSync(2, rest))
          isStuck = false
        } catch (error) {
          // A pipe that does not block is full for a moment.
          isStuck = (error as NodeJS.ErrnoException).code === 'EAGAIN' && pauses++ >= busyPauses
          if (isStuck || (error as NodeJS.ErrnoException).code !== 'EAGAIN') return
          Atomics.wait(pause, 0, 0, busyPauseMs)
        }
      }
    },
  }
}

/** A logger that writes nowhere. */
export function createSilentLogger(): Logger {
  return createLogger({ level: 'silent', destination: { write() {} } })
}

function wrap(target: pino.Logger, participants: boolean): Logger {
  const line = (fields: LogFields) => allowed(fields, participants)
  return {
    debug: (fields, message) => target.debug(line(fields), clean(message)),
    info: (fields, message) => target.info(line(fields), clean(message)),
    warn: (fields, message) => target.warn(line(fields), clean(message)),
    error: (fields, message) => target.error(line(fields), clean(message)),
    child: (fields) => wrap(target.child(line(fields)), participants),
  }
}

function allowed(fields: LogFields, participants: boolean): Record<string, unknown> {
  const line: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined || !Object.hasOwn(fieldKinds, name)) continue
    const kind = fieldKinds[name as keyof LogFields]
    if (kind === 'error') line.error = describe(value)
    else if (kind === 'participant') line[name] = nameOf(value as Kinds['participant'], participants)
    else if (typeof value === 'string') line[name] = clean(value)
    else if (typeof value === 'number') line[name] = value
  }
  return line
}

/** A reader who knows a participant can look for its lines, and nobody else reads who it was. */
function nameOf({ product, role, userId }: Kinds['participant'], participants: boolean): unknown {
  if (participants) return { product: clean(product), role: clean(role), user_id: clean(userId) }
  return createHash('sha256').update(`${product}\0${role}\0${userId}`).digest('hex').slice(0, 16)
}

function describe(error: unknown): Record<string, string> {
  if (!(error instanceof Error)) return { name: typeof error }
  const described: Record<string, string> = { name: error.name, message: clean(error.message) }
  const { code } = error as NodeJS.ErrnoException
  if (typeof code === 'string') described.code = clean(code)
  // The first line of a stack repeats the message.
  const frames = error.stack?.split('\n').filter((line) => /^\s+at /.test(line))
  if (frames !== undefined && frames.length > 0) described.at = clean(frames.slice(0, 8).join('\n'))
  if (error.cause instanceof Error) described.cause = `${error.cause.name}: ${clean(error.cause.message)}`
  return described
}

const longestText = 1000

/** The second lock: a text of an allowed field that still carries a token, an SDP or a candidate. */
function clean(text: string): string {
  return text
    .replaceAll(/eyJ[\w-]{8,}(?:\.[\w-]*){1,2}/g, '(token)')
    .replaceAll(/\bv=0(?:\s|\\[rn])[\s\S]*|\ba=(?:ice-|fingerprint|candidate)[\s\S]*/g, '(sdp)')
    .replaceAll(/candidate:\S+ \d+ [\s\S]*/g, '(candidate)')
    .replaceAll(/\?[^\s"']*/g, (query) => (query.includes('=') ? '?(query)' : query))
    .slice(0, longestText)
}
