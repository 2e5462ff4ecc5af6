/**
 * The local networks that this machine is in, for a demo that is open to them (RINGWIRE_DEMO=lan).
 *
 *   const lan = localNetworks()
 *   lan.addresses            → this machine's own, as 192.168.1.20
 *   lan.has('192.168.1.31')  → true
 */
import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'

export interface Lan {
  readonly addresses: readonly string[]
  /** Whether an address is in one of the networks; one that cannot be read is not. */
  has(address: string): boolean
}

/** Public addresses, and those that a provider gives to its customers (RFC 6598): others in such a network are strangers. */
function isOfStrangers(address: string): boolean {
  return ['unicast', 'carrierGradeNat'].includes(ipaddr.parse(address).range())
}

/** Only IPv4: phones have it, and people can type it. Networks with public addresses hold strangers. */
export function localNetworks(interfaces: ReturnType<typeof networkInterfaces> = networkInterfaces()): Lan {
  const own = Object.values(interfaces)
    .flatMap((entries) => entries ?? [])
    .flatMap(({ address, family, internal, cidr }) => {
      const isLocal = family === 'IPv4' && !internal && !isOfStrangers(address)
      return isLocal && cidr !== null ? [{ address, network: ipaddr.parseCIDR(cidr) }] : []
    })
  return {
    addresses: own.map(({ address }) => address),
    has(address) {
      if (!ipaddr.isValid(address)) return false
      const peer = ipaddr.process(address)
      return own.some(({ network }) => peer.kind() === 'ipv4' && peer.match(network))
    },
  }
}
