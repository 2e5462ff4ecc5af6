/**
 * The address of the running service, for commands that print it or send requests there. After --url, the first that is
 * set counts:
 *
 *   RINGWIRE_URL, RINGWIRE_PUBLIC_URL, RINGWIRE_PORT, where the service of the data directory listens, the default port
 *
 *   findWsUrl(surroundings)        → the ws_url there; null where RINGWIRE_PORT is 0 and no service listens
 *   requireWsUrl(surroundings)     → the same, or the end with a line that says what to do
 *   requireServiceUrl(surroundings) → the same of http://127.0.0.1:8080
 */
import { webSocketPath } from '@ringwire/protocol/subprotocol'
import { readAddress } from '../config/address-file.ts'
import type { Config } from '../config/config.ts'
import { createWsUrl } from '../config/ws-url.ts'
import { CommandFailure, exitCodes, requireConfig, type Surroundings } from './command.ts'

export function findWsUrl(surroundings: Surroundings): string | null {
  const { RINGWIRE_URL } = surroundings.env
  return RINGWIRE_URL ? webSocketUrl(RINGWIRE_URL) : findOwnWsUrl(surroundings)
}

export function requireWsUrl(surroundings: Surroundings): string {
  return found(findWsUrl(surroundings))
}

export function requireServiceUrl(surroundings: Surroundings): string {
  const { RINGWIRE_URL } = surroundings.env
  return RINGWIRE_URL || new URL(found(findOwnWsUrl(surroundings)).replace(/^ws/, 'http')).origin
}

function found(url: string | null): string {
  if (url !== null) return url
  throw new CommandFailure(exitCodes.usage, 'RINGWIRE_PORT is 0, and no service listens here: start it, or give --url.')
}

/** Of the service that runs with the settings and the data directory of this command. */
function findOwnWsUrl(surroundings: Surroundings): string | null {
  const { config } = requireConfig(surroundings)
  const listening = addressOf(surroundings.env.RINGWIRE_PORT, config)
  if (config.publicUrl === null && listening === null) return null
  return createWsUrl(config)(listening ?? '')
}

function addressOf(setPort: string | undefined, config: Config): string | null {
  const { databaseUrl, dataDir, port, tlsCert } = config
  const isSet = Boolean(setPort?.trim()) && port !== 0
  // With a database, the service that serves this directory is another one.
  const listening = isSet || databaseUrl !== null ? undefined : readAddress(dataDir)
  if (listening !== undefined || port === 0) return listening ?? null
  const host = config.host.includes(':') ? `[${config.host}]` : config.host
  return `${tlsCert === null ? 'http' : 'https'}://${host}:${port}`
}

/** Of the address that the other commands ask; a proxy may serve it below a path of its own. */
function webSocketUrl(address: string): string {
  const url = URL.canParse(address) ? new URL(address.replace(/^http/, 'ws')) : undefined
  if (url === undefined || !/^wss?:$/.test(url.protocol)) {
    throw new CommandFailure(exitCodes.usage, 'RINGWIRE_URL has to be like http://127.0.0.1:8080.')
  }
  url.pathname = `${url.pathname.replace(/\/+$/, '')}${webSocketPath}`
  return url.href
}
