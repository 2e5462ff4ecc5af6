// The systems that are compared, and how each is started.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '@ringwire/testkit/ports'
import { runtimeSettings } from '../../server/bin/runtime-settings.mjs'
import { bareBun } from './dialects/bare-bun.ts'
import type { Dialect } from './dialects/dialect.ts'
import { acknowledged, extended } from './dialects/extended.ts'
import { loop } from './dialects/loop.ts'
import { nats } from './dialects/nats.ts'
import { distant, secure } from './dialects/over.ts'
import { peerServer } from './dialects/peerserver.ts'
import { ringwire } from './dialects/ringwire.ts'
import { socketIo } from './dialects/socketio.ts'
import { xmpp } from './dialects/xmpp.ts'
import { PEER_TITLES, PEERS, type PeerName, peerCommand } from './peers.ts'
import { type ServerCommand, type ServerProcess, startServer } from './process.ts'
import { bootstrapKey, productKey } from './tokens.ts'

export const SYSTEMS = ['ringwire', 'peerserver', 'socketio', 'bare'] as const
export type SystemName = (typeof SYSTEMS)[number]
export type ComparedName = SystemName | PeerName
/** Only to see what the generator can do; nobody would run them. */
export type ReferenceName = 'bare-forward' | 'bare-coalesced'
/** Other ways to speak to Ringwire. */
export type ModeName = 'extended' | 'acknowledged' | 'limited' | 'secure' | 'distant'
export type AnySystem = ComparedName | ReferenceName | ModeName

export const TITLES: Record<AnySystem, string> = {
  ringwire: 'Ringwire',
  peerserver: 'PeerServer',
  socketio: 'Socket.IO',
  bare: 'bare Bun',
  ...PEER_TITLES,
  extended: 'extended',
  acknowledged: 'extended, every message acknowledged',
  limited: 'Ringwire with its limits',
  secure: 'Ringwire over TLS',
  distant: 'Ringwire over a slow network',
  'bare-forward': 'bytes forwarded',
  'bare-coalesced': 'bare Bun, one write a turn',
}

export function dialectOf(system: AnySystem): Dialect {
  switch (system) {
    case 'ringwire':
    case 'limited':
      return ringwire
    case 'extended':
      return extended
    case 'acknowledged':
      return acknowledged
    case 'secure':
      return secure
    case 'distant':
      return distant
    case 'peerserver':
      return peerServer
    case 'socketio':
      return socketIo
    case 'nats':
      return nats
    case 'prosody':
      return xmpp
    case 'loop':
      return loop
    default:
      return bareBun
  }
}

/** Node runs PeerServer and Socket.IO; another one than the first in PATH can be named. */
export function nodeBinary(): string {
  const node = process.env.RINGWIRE_BENCH_NODE ?? Bun.which('node')
  if (node === null) throw new Error('Node is missing: PeerServer and Socket.IO run on it')
  return node
}

const peers = join(import.meta.dir, 'peers')
const ringwireMain = join(import.meta.dir, '..', '..', 'server', 'src', 'main.ts')

export function commandOf(system: Exclude<AnySystem, PeerName>, directory: string): ServerCommand {
  const bare = [process.execPath, join(peers, 'bare-bun.ts')]
  switch (system) {
    case 'ringwire':
    case 'extended':
    case 'acknowledged':
    case 'limited':
    case 'secure':
    case 'distant': {
      const data = join(directory, `data-${crypto.randomUUID()}`)
      mkdirSync(data, { recursive: true })
      return {
        name: system,
        command: [process.execPath, ringwireMain, 'serve'],
        env: ringwireSettings(data, system === 'limited'),
      }
    }
    case 'peerserver':
      return { name: system, command: [nodeBinary(), join(peers, 'peerjs.mjs')], env: { NODE_ENV: 'production' } }
    case 'socketio':
      return { name: system, command: [nodeBinary(), join(peers, 'socketio.mjs')], env: { NODE_ENV: 'production' } }
    case 'bare-forward':
      return { name: system, command: [...bare, '--forward'], env: {} }
    case 'bare-coalesced':
      return { name: system, command: [...bare, '--coalesce'], env: {} }
    case 'bare':
      return { name: system, command: bare, env: {} }
  }
}

/** Defaults, except that no rate limit stops the load, where it is not `limited`. All checks stay on. */
function ringwireSettings(dataDirectory: string, limited: boolean): Record<string, string> {
  const settings = {
    RINGWIRE_HOST: '127.0.0.1',
    RINGWIRE_PORT: '0',
    RINGWIRE_DATA_DIR: dataDirectory,
    RINGWIRE_BOOTSTRAP_KEYS: bootstrapKey(productKey),
    // As its launcher, and the executable.
    ...runtimeSettings,
  }
  if (limited) return settings
  return {
    ...settings,
    RINGWIRE_WS_RATE: 'off',
    RINGWIRE_TOKEN_RATE_IP: 'off',
    RINGWIRE_TOKEN_RATE_KEY: 'off',
    RINGWIRE_INVITE_RATE: 'off',
    RINGWIRE_PAIR_INVITE_RATE: 'off',
    RINGWIRE_REST_RATE_IP: 'off',
    RINGWIRE_REST_RATE: 'off',
    RINGWIRE_CONNECT_RATE: 'off',
  }
}

export function isPeer(system: AnySystem): system is PeerName {
  return PEERS.some((peer) => peer === system)
}

export interface RunningSystem extends ServerProcess {
  system: AnySystem
}

/** Ringwire, and where its operators ask; with `isListening` off it is the same without that. */
export interface ObservedSystem extends RunningSystem {
  adminPort: number
}

export async function startObserved(
  core: number | null,
  directory: string,
  isListening = true,
): Promise<ObservedSystem> {
  const adminPort = await freePort()
  const { env, ...command } = commandOf('ringwire', directory)
  const settings = isListening ? { ...env, RINGWIRE_ADMIN_PORT: String(adminPort) } : env
  return { system: 'ringwire', adminPort, ...(await startServer({ ...command, env: settings }, core, directory)) }
}

/** `settings`: beside those of `commandOf`; `preload`: a file that runs before the service. */
export async function startSystem(
  system: AnySystem,
  core: number | null,
  directory: string,
  { settings = {}, preload }: { settings?: Record<string, string>; preload?: string } = {},
): Promise<RunningSystem> {
  const server = isPeer(system) ? await peerCommand(system, directory) : commandOf(system, directory)
  const { command, env } = server
  const [program = '', ...args] = command
  const whole = preload === undefined ? command : [program, '--preload', join(peers, preload), ...args]
  return {
    system,
    ...(await startServer({ ...server, command: whole, env: { ...env, ...settings } }, core, directory)),
  }
}
