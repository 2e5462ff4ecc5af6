/**
 * Every setting of the service, in one table: it gives the parser of the environment, the type `Config`, the printed
 * documents and `ringwire config check`.
 *
 *   loadConfig(env)      → { ok: true, config, warnings } | { ok: false, problems, warnings }
 *   settingRows()        → one row per variable, for documents and help
 *   describeConfig(env)  → one row per variable with what it is set to; secrets do not show
 *
 * A secret may be in a file instead, which NAME_FILE names.
 */
import { randomBytes } from 'node:crypto'
import { readSecretFile } from './secret-files.ts'
import {
  type BootstrapKey,
  baseUrl,
  bootstrapKeys,
  demo,
  flag,
  host,
  iceUrls,
  integer,
  isLoopbackHost,
  type JwtSecret,
  jwtSecrets,
  type MessageRate,
  messageRate,
  oneOf,
  origins,
  orOff,
  type Parsed,
  postgresUrl,
  type Rate,
  rate,
  redisUrl,
  type TrustProxy,
  text,
  token,
  trustProxy,
  type ValueType,
  workers,
} from './values.ts'

export type { BootstrapKey, JwtSecret, MessageRate, Rate, TrustProxy }
export { isLoopbackHost }

interface Setting<T> {
  readonly name: string
  readonly type: ValueType<T>
  /** What an unset variable means. */
  readonly fallback: () => T
  /** The same in the words of the documents. */
  readonly default: string
  readonly unit: string
  readonly secret: boolean
  readonly description: string
}

function setting<T>(
  name: string,
  type: ValueType<T>,
  defaultText: string,
  description: string,
  options: { unit?: string; secret?: boolean; fallback?: () => T } = {},
): Setting<T> {
  const { unit = '', secret = false } = options
  const fallback = options.fallback ?? (() => parseDefault(name, type, defaultText))
  return { name, type, fallback, default: defaultText, unit, secret, description }
}

/** The default goes through the parser too, so the table cannot say something that it would not accept. */
function parseDefault<T>(name: string, type: ValueType<T>, defaultText: string): T {
  const parsed = type.parse(defaultText)
  if (!parsed.ok) throw new Error(`the default of ${name} ${parsed.problem}`)
  return parsed.value
}

/** A setting that is `value` where its variable is unset. */
function unset<T, U>(
  name: string,
  type: ValueType<T>,
  value: U,
  means: string,
  description: string,
  options: { unit?: string; secret?: boolean } = {},
): Setting<T | U> {
  return setting<T | U>(name, type, means, description, { ...options, fallback: () => value })
}

/** The longest a timer can be asked to wait. */
const longest = 2 ** 31 - 1
const duration = (name: string, ms: number, description: string, max = longest) =>
  setting(name, integer(1, max), String(ms), description, { unit: 'ms' })
const limit = (name: string, value: string, description: string) => setting(name, rate(), value, description)

export const settings = {
  host: setting('RINGWIRE_HOST', host(), '127.0.0.1', 'Address to listen on.'),
  port: setting('RINGWIRE_PORT', integer(0, 65_535), '8080', 'Port to listen on; 0 takes any free one.'),
  workers: setting(
    'RINGWIRE_WORKERS',
    workers(),
    '1',
    'Processes that listen on the port together, each a node; auto: one for each usable core. More than 1 needs REDIS_URL.',
  ),
  publicUrl: unset(
    'RINGWIRE_PUBLIC_URL',
    baseUrl(),
    null,
    'unset: from the request',
    'Where clients reach the service, as https://calls.example.com; ws_url is made from it.',
  ),
  dataDir: setting('RINGWIRE_DATA_DIR', text('directory'), './data', 'Directory of the database and of made secrets.'),
  databaseUrl: unset(
    'DATABASE_URL',
    postgresUrl(),
    null,
    'unset: SQLite in the data directory',
    'The PostgreSQL database that holds calls and keys; sslmode and sslrootcert are read from it. Several processes can use it with REDIS_URL.',
    { secret: true },
  ),
  redisUrl: unset(
    'REDIS_URL',
    redisUrl(),
    null,
    'unset: in process',
    'Redis with the sessions of all nodes that use the database; needs DATABASE_URL and RINGWIRE_JWT_SECRETS.',
    { secret: true },
  ),
  sqliteSynchronous: setting(
    'RINGWIRE_SQLITE_SYNCHRONOUS',
    oneOf('FULL', 'NORMAL'),
    'FULL',
    'FULL: what was answered survives a power loss. NORMAL: it survives a crash of the process.',
  ),
  retentionDays: setting(
    'RINGWIRE_RETENTION_DAYS',
    orOff(integer(1, 36_500)),
    '90',
    'How many days calls are kept after their end; off keeps them for ever.',
  ),
  jwtSecrets: unset(
    'RINGWIRE_JWT_SECRETS',
    jwtSecrets(),
    null,
    'unset: made once in the data directory',
    'Keys of session tokens, 32 bytes or more each; the first signs, all verify.',
    { secret: true },
  ),
  bootstrapKeys: unset(
    'RINGWIRE_BOOTSTRAP_KEYS',
    bootstrapKeys(),
    [] as readonly BootstrapKey[],
    'unset: none',
    'Product keys that exist from the start; one that is no longer listed is disabled.',
    { secret: true },
  ),
  tokenTtlS: setting('RINGWIRE_TOKEN_TTL_S', integer(1, 86_400), '3600', 'Lifetime of a session token.', { unit: 's' }),
  tokenGraceMs: duration(
    'RINGWIRE_TOKEN_GRACE_MS',
    30_000,
    'How long a socket stays after its token expired, or after its last call if that is later.',
  ),
  ringTimeoutMs: duration(
    'RINGWIRE_RING_TIMEOUT_MS',
    45_000,
    'How long a call rings before it is missed; a product may set its own.',
    180_000,
  ),
  callerLostMs: duration(
    'RINGWIRE_CALLER_LOST_MS',
    20_000,
    'How long a ringing call waits for a caller whose connection is lost, and an answered one for two peers who closed theirs.',
  ),
  peerLostMs: duration(
    'RINGWIRE_PEER_LOST_MS',
    120_000,
    'How long an answered call waits for a peer whose connection is lost.',
  ),
  maxCallMs: duration('RINGWIRE_MAX_CALL_MS', 43_200_000, 'The longest that an answered call may last.'),
  resumeWindowMs: duration(
    'RINGWIRE_RESUME_WINDOW_MS',
    120_000,
    'How long an extended session can be resumed after its socket was lost.',
  ),
  drainMs: setting(
    'RINGWIRE_DRAIN_MS',
    integer(0, 600_000),
    '10000',
    'How long a node that stops takes to send its clients to other nodes; where there are none, all are closed at once.',
    { unit: 'ms' },
  ),
  pingIntervalMs: duration('RINGWIRE_PING_INTERVAL_MS', 25_000, 'How often a socket is pinged.'),
  pongTimeoutMs: duration('RINGWIRE_PONG_TIMEOUT_MS', 10_000, 'How long a pong may take before the socket is closed.'),
  probeTimeoutMs: duration(
    'RINGWIRE_PROBE_TIMEOUT_MS',
    3_000,
    'The same for the ping that asks whether the holder of a place is still there.',
  ),
  tokenRateIp: limit('RINGWIRE_TOKEN_RATE_IP', '6000/60', 'Token requests per address (IPv6: per /64).'),
  tokenFailRateIp: limit(
    'RINGWIRE_TOKEN_FAIL_RATE_IP',
    '20/60',
    'Failures of product credentials per address; over it only further failures are refused with 429.',
  ),
  tokenRateKey: limit('RINGWIRE_TOKEN_RATE_KEY', '6000/60', 'Token requests per product key.'),
  restRateIp: limit(
    'RINGWIRE_REST_RATE_IP',
    '1000/10',
    'All other REST requests per address (IPv6: per /64), counted by each process for itself.',
  ),
  restRate: limit(
    'RINGWIRE_REST_RATE',
    '120/60',
    'Requests of one participant for its history or ICE servers, counted by each process for itself.',
  ),
  connectRate: limit(
    'RINGWIRE_CONNECT_RATE',
    '240/60',
    'Sockets that one participant may open, resumes included, counted by each process for itself.',
  ),
  inviteRate: limit('RINGWIRE_INVITE_RATE', '30/60', 'Invites per caller.'),
  pairInviteRate: limit('RINGWIRE_PAIR_INVITE_RATE', '30/60', 'Invites from one caller to one callee.'),
  maxRinging: setting('RINGWIRE_MAX_RINGING', integer(1, 1000), '5', 'Ringing calls that one caller may have at once.'),
  maxSockets: setting('RINGWIRE_MAX_SOCKETS', integer(1, 10_000), '20', 'Sockets of one participant.'),
  wsRate: setting(
    'RINGWIRE_WS_RATE',
    messageRate(),
    '20/200',
    'Messages that one socket may send. Ten times as many: all sockets of a participant on one node, and pings.',
  ),
  stunUrls: unset(
    'RINGWIRE_STUN_URLS',
    iceUrls('stun'),
    [] as readonly string[],
    'unset: none',
    'STUN servers for clients.',
  ),
  turnUrls: unset(
    'RINGWIRE_TURN_URLS',
    iceUrls('turn'),
    [] as readonly string[],
    'unset: none',
    'TURN servers for clients; needs RINGWIRE_TURN_SECRET, or RINGWIRE_TURN_USERNAME and RINGWIRE_TURN_CREDENTIAL.',
  ),
  turnSecret: unset(
    'RINGWIRE_TURN_SECRET',
    text(),
    null,
    'unset',
    'The secret shared with the TURN servers (static-auth-secret of coturn): each token gets credentials of its own.',
    { secret: true },
  ),
  turnUsername: unset(
    'RINGWIRE_TURN_USERNAME',
    text(),
    null,
    'unset',
    'Fixed TURN user name, where there is no secret.',
  ),
  turnCredential: unset('RINGWIRE_TURN_CREDENTIAL', text(), null, 'unset', 'Fixed TURN credential.', { secret: true }),
  turnTtlS: unset(
    'RINGWIRE_TURN_TTL_S',
    integer(1, 86_400),
    null,
    'unset: as long as the token, at least 4 h',
    'Lifetime of the TURN credentials that are made with the secret.',
    { unit: 's' },
  ),
  trustProxy: unset(
    'RINGWIRE_TRUST_PROXY',
    trustProxy(),
    null,
    'unset: none',
    'Proxies whose X-Forwarded-For is believed; the client is the right-most entry that none of them is.',
  ),
  tlsCert: unset('RINGWIRE_TLS_CERT', text('file'), null, 'unset: plain HTTP', 'Certificate chain, PEM.'),
  tlsKey: unset('RINGWIRE_TLS_KEY', text('file'), null, 'unset', 'Private key of the certificate, PEM.'),
  allowedOrigins: unset(
    'RINGWIRE_ALLOWED_ORIGINS',
    origins(),
    null,
    'unset: any',
    'Origins of web pages that may connect and read the history.',
  ),
  adminPort: unset(
    'RINGWIRE_ADMIN_PORT',
    integer(0, 65_535),
    null,
    'unset: none (`npm start`: any free one)',
    'Port of a second listener for operators: /metrics, /healthz, /readyz; 0 takes any free one, and the log says which. With several workers it tells of all of them.',
  ),
  adminHost: setting(
    'RINGWIRE_ADMIN_HOST',
    host(),
    '127.0.0.1',
    'Address of the second listener; any but a loopback address needs RINGWIRE_ADMIN_TOKEN.',
  ),
  adminToken: unset(
    'RINGWIRE_ADMIN_TOKEN',
    token(),
    null,
    'unset: none is asked for',
    'What the second listener asks for, as a bearer token; on a loopback address not for /metrics.',
    { secret: true },
  ),
  demo: setting(
    'RINGWIRE_DEMO',
    demo(),
    '0',
    '1 serves a demo page on this machine only; lan, which ringwire serve --lan sets, to its local networks, too. It has a key of its own that counts for nothing without it. It knows who is online in its own process, so more than one worker is refused.',
  ),
  logLevel: setting('RINGWIRE_LOG_LEVEL', oneOf('debug', 'info', 'warn', 'error', 'silent'), 'info', 'What is logged.'),
  logParticipants: setting(
    'RINGWIRE_LOG_PARTICIPANTS',
    flag(),
    '0',
    '1 names participants in the log. Else a hash stands for each: the first 16 digits of the SHA-256 of product, role and user_id with a NUL between them.',
  ),
  nodeId: setting('RINGWIRE_NODE_ID', text(), 'random', 'Name of this node; of worker 2 of several it is NAME-2.', {
    fallback: () => randomBytes(8).toString('hex'),
  }),
}

type Settings = typeof settings
export type Config = {
  readonly [K in keyof Settings]: Settings[K] extends Setting<infer T> ? T : never
} & {
  /** The files that secrets were read from. */
  readonly secretFiles: readonly string[]
}

export type Environment = Readonly<Record<string, string | undefined>>

export type LoadedConfig =
  | { readonly ok: true; readonly config: Config; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly problems: readonly string[]; readonly warnings: readonly string[] }

/** Reads the environment; all problems at once, one line each, every line naming its variable. */
export function loadConfig(env: Environment): LoadedConfig {
  const problems: string[] = []
  const warnings: string[] = []
  const secretFiles: string[] = []
  const values: Record<string, unknown> = { secretFiles }
  for (const [field, entry] of Object.entries<Setting<unknown>>(settings)) {
    const given = readSetting(env, entry)
    if (given === undefined) {
      values[field] = entry.fallback()
      continue
    }
    const { variable, path, text: read } = given
    if (path !== undefined) secretFiles.push(path)
    const parsed = read.ok ? entry.type.parse(read.value) : read
    if (parsed.ok) {
      values[field] = parsed.value
      for (const warning of parsed.warnings ?? []) warnings.push(`${variable}: ${warning}`)
    } else problems.push(`${variable} ${parsed.problem}`)
  }
  warnings.push(...unknownVariables(env))
  // A variable that could not be read is not judged a second time together with others.
  const config = values as Config
  problems.push(...contradictions(config))
  return problems.length === 0 ? { ok: true, config, warnings } : { ok: false, problems, warnings }
}

/** An empty variable counts as unset, as compose files and shells write it. */
function readVariable(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim()
  return value === '' ? undefined : value
}

interface Given {
  /** What problems name. */
  readonly variable: string
  /** Of the file that the variable names. */
  readonly path?: string
  readonly text: Parsed<string>
}

/** The text that a setting is given, by its variable or, if it is a secret, by a file; undefined where it is not set. */
function readSetting(env: Environment, { name, secret }: Setting<unknown>): Given | undefined {
  const value = readVariable(env, name)
  const path = secret ? readVariable(env, fileVariable(name)) : undefined
  if (path === undefined) return value === undefined ? undefined : { variable: name, text: { ok: true, value } }
  if (value !== undefined) {
    return { variable: name, text: { ok: false, problem: `and ${fileVariable(name)} exclude each other` } }
  }
  return { variable: fileVariable(name), path, text: readSecretFile(path) }
}

/** The variable that names the file of a secret. */
export function fileVariable(name: string): string {
  return `${name}_FILE`
}

function unknownVariables(env: Environment): string[] {
  const all = Object.values<Setting<unknown>>(settings)
  const known = new Set(all.flatMap(({ name, secret }) => (secret ? [name, fileVariable(name)] : [name])))
  const unknown = Object.keys(env).filter((name) => name.startsWith('RINGWIRE_') && !known.has(name))
  return unknown.sort().map((name) => `${name} is not a setting of Ringwire; it is ignored`)
}

/** What single values cannot show. A field is undefined here where its own value was bad. */
function contradictions(config: Partial<Config>): string[] {
  const problems: string[] = []
  const { tlsCert, tlsKey, turnUrls, turnSecret, turnUsername, turnCredential, host: address } = config
  const hasWorkers = config.workers !== undefined && config.workers > 1
  if (tlsCert && tlsKey === null) problems.push('RINGWIRE_TLS_KEY is required with RINGWIRE_TLS_CERT')
  if (tlsKey && tlsCert === null) problems.push('RINGWIRE_TLS_CERT is required with RINGWIRE_TLS_KEY')
  if (turnUsername && turnCredential === null) {
    problems.push('RINGWIRE_TURN_CREDENTIAL is required with RINGWIRE_TURN_USERNAME')
  }
  if (turnCredential && turnUsername === null) {
    problems.push('RINGWIRE_TURN_USERNAME is required with RINGWIRE_TURN_CREDENTIAL')
  }
  if (turnSecret && (turnUsername || turnCredential)) {
    problems.push('RINGWIRE_TURN_SECRET and fixed credentials (RINGWIRE_TURN_USERNAME) exclude each other')
  }
  if (turnUrls !== undefined && turnUrls.length > 0) {
    if (turnSecret === null && turnUsername === null && turnCredential === null) {
      problems.push('RINGWIRE_TURN_URLS needs RINGWIRE_TURN_SECRET, or RINGWIRE_TURN_USERNAME and _CREDENTIAL')
    }
  }
  if (config.redisUrl) {
    if (config.databaseUrl === null) problems.push('REDIS_URL needs DATABASE_URL: nodes share their calls, too')
    if (config.jwtSecrets === null) problems.push('REDIS_URL needs RINGWIRE_JWT_SECRETS: all nodes sign with the same')
  } else if (config.redisUrl === null && hasWorkers && !config.demo) {
    problems.push('RINGWIRE_WORKERS over 1 needs REDIS_URL and DATABASE_URL: each worker is a node')
  }
  const { adminPort, adminHost, adminToken } = config
  if (typeof adminPort === 'number' && adminHost !== undefined) {
    if (adminToken === null && !isLoopbackHost(adminHost)) {
      problems.push('RINGWIRE_ADMIN_TOKEN is required where RINGWIRE_ADMIN_HOST is no loopback address, as 127.0.0.1')
    }
    if (adminPort !== 0 && adminPort === config.port) {
      problems.push('RINGWIRE_ADMIN_PORT has to be another port than RINGWIRE_PORT')
    }
  }
  if (config.demo === true && address !== undefined && !isLoopbackHost(address)) {
    problems.push(
      'RINGWIRE_DEMO is for this machine only: RINGWIRE_HOST must be a loopback address, as 127.0.0.1 (ringwire serve --lan opens it to the local network)',
    )
  }
  if (config.demo === 'lan' && tlsCert === null) {
    problems.push('RINGWIRE_DEMO=lan needs RINGWIRE_TLS_CERT: browsers give https pages a camera (--lan makes one)')
  }
  if (config.demo && hasWorkers) {
    problems.push('RINGWIRE_DEMO is for one process: it knows its people there alone, so RINGWIRE_WORKERS must be 1')
  }
  return problems
}

export interface SettingRow {
  readonly name: string
  readonly type: string
  readonly default: string
  readonly unit: string
  readonly secret: boolean
  readonly description: string
}

export function settingRows(): SettingRow[] {
  return Object.values<Setting<unknown>>(settings).map(({ name, type, unit, secret, description, ...entry }) => ({
    name,
    type: type.label,
    default: entry.default,
    unit,
    secret,
    description,
  }))
}

/** What each variable is set to. A secret shows only that it is set, or that a file has it. */
export function describeConfig(env: Environment): { name: string; value: string; source: 'set' | 'default' }[] {
  return Object.values<Setting<unknown>>(settings).map(({ name, secret, ...entry }) => {
    const given = readVariable(env, name)
    if (given !== undefined) return { name, value: secret ? '(set, not shown)' : given, source: 'set' }
    const isInFile = secret && readVariable(env, fileVariable(name)) !== undefined
    return isInFile ? { name, value: '(from file)', source: 'set' } : { name, value: entry.default, source: 'default' }
  })
}
