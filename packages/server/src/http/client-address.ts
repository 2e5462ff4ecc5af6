/**
 * Whose request it is, behind proxies or not (RINGWIRE_TRUST_PROXY).
 *
 *   const clientAddress = createClientAddress(config.trustProxy, logger)
 *   clientAddress(headers, socketAddress) → the client's address, or undefined where it is not known
 */
import ipaddr from 'ipaddr.js'
import type { TrustProxy } from '../config/config.ts'
import type { Logger } from '../observability/logger.ts'

export type ClientAddress = (headers: Headers, socketAddress: string | undefined) => string | undefined

type Address = ipaddr.IPv4 | ipaddr.IPv6

export function createClientAddress(trust: TrustProxy | null, logger: Logger): ClientAddress {
  if (trust === null) return unproxied(logger)
  if (trust.kind === 'hops') return (headers, socket) => byHops(trust.hops, headers, socket)
  const networks = trust.networks.map(parseNetwork)
  return (headers, socket) => byNetworks(networks, headers, socket)
}

/** Without proxies the header is only a claim of the client. That it comes at all is worth one warning. */
function unproxied(logger: Logger): ClientAddress {
  let warned = false
  return (headers, socket) => {
    if (!warned && headers.has('x-forwarded-for')) {
      warned = true
      const message = 'X-Forwarded-For comes, but RINGWIRE_TRUST_PROXY is unset: limits count the proxy as one client'
      logger.warn({ setting: 'RINGWIRE_TRUST_PROXY' }, message)
    }
    return socket
  }
}

/** The socket is the first proxy; every further one added the entry of whom it saw. */
function byHops(hops: number, headers: Headers, socket: string | undefined): string | undefined {
  const entries = forwarded(headers)
  let client = socket
  for (let hop = 0; hop < hops; hop++) {
    const address = readAddress(entries.pop())
    if (address === undefined) break
    client = address.toString()
  }
  return client
}

/** From the right: everyone who is a trusted proxy vouches for the entry before. */
function byNetworks(
  networks: readonly [Address, number][],
  headers: Headers,
  socket: string | undefined,
): string | undefined {
  const entries = forwarded(headers)
  let client = socket
  let address = readAddress(socket)
  while (address !== undefined && isTrusted(address, networks)) {
    address = readAddress(entries.pop())
    if (address !== undefined) client = address.toString()
  }
  return client
}

function forwarded(headers: Headers): string[] {
  const value = headers.get('x-forwarded-for')
  return value === null ? [] : value.split(',')
}

/** An entry may carry a port, and brackets with it; anything else that is no address ends the search. */
function readAddress(entry: string | undefined): Address | undefined {
  if (entry === undefined) return undefined
  const trimmed = entry.trim()
  const bare =
    /^\[([^\]]+)\](?::\d+)?$/.exec(trimmed)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+)(?::\d+)?$/.exec(trimmed)?.[1] ?? trimmed
  return ipaddr.IPv4.isValidFourPartDecimal(bare) || ipaddr.IPv6.isValid(bare) ? ipaddr.process(bare) : undefined
}

function parseNetwork(text: string): [Address, number] {
  if (!text.includes('/')) {
    const address = ipaddr.process(text)
    return [address, address.kind() === 'ipv4' ? 32 : 128]
  }
  return ipaddr.parseCIDR(text)
}

function isTrusted(address: Address, networks: readonly [Address, number][]): boolean {
  return networks.some((network) => address.kind() === network[0].kind() && address.match(network))
}
