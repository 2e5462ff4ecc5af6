import { isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'

/*
 * Which addresses requests to URLs of strangers may go to [HOOK4]: those of the public internet, and what
 * RINGWIRE_WEBHOOK_ALLOW names.
 */

export interface AddressGuard {
  /** Whether a request may go to this IP address. */
  allows(address: string): boolean
  /** Whether it may go there without TLS: on the machine itself, where that is allowed. */
  allowsPlain(address: string): boolean
}

type Address = ipaddr.IPv4 | ipaddr.IPv6

export function createAddressGuard(allowed: readonly string[]): AddressGuard {
  const networks = allowed.map((text) => parseNetwork(text))

  function isNamed(address: Address): boolean {
    return networks.some(
      ([network, bits]) => network.kind() === address.kind() && address.match(network as never, bits),
    )
  }

  function read(text: string): Address | undefined {
    // An address with a zone (fe80::1%eth0) belongs to a link. An IPv4-mapped address is judged as the IPv4 address it means.
    return isIP(text) === 0 || text.includes('%') ? undefined : ipaddr.process(text)
  }

  return {
    allows(text) {
      const address = read(text)
      return address !== undefined && (isNamed(address) || isPublic(address))
    },
    allowsPlain(text) {
      const address = read(text)
      return address !== undefined && address.range() === 'loopback' && isNamed(address)
    },
  }
}

/**
 * No public unicast: every block of the IANA IPv4 special-purpose registry, multicast, and addresses where clouds give a
 * machine its own credentials.
 */
const specialIPv4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24', '192.88.99.0/24', '192.168.0.0/16', '192.175.48.0/24'],
  ...['198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4', '168.63.129.16/32'],
].map((text) => ipaddr.IPv4.parseCIDR(text))

/** All global unicast that IANA has allocated (RFC 4291 section 2.4). */
const unicastIPv6 = ipaddr.IPv6.parseCIDR('2000::/3')
/**
 * The blocks of the IANA IPv6 special-purpose registry in it: protocol assignments with Teredo and ORCHID, documentation, 6to4
 * and AS112. Addresses outside of it need no list: NAT64, unique local, link-local, IPv4-compatible, multicast and the
 * rest.
 */
const specialIPv6 = ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'].map((text) =>
  ipaddr.IPv6.parseCIDR(text),
)

function isPublic(address: Address): boolean {
  if (address instanceof ipaddr.IPv4) return !specialIPv4.some((network) => address.match(network))
  return address.match(unicastIPv6) && !specialIPv6.some((network) => address.match(network)) && !isIsatap(address)
}

/** An interface id `0000:5efe` or `0200:5efe` before an IPv4 address, which a tunnel leads to (RFC 5214 section 6.1). */
function isIsatap({ parts }: ipaddr.IPv6): boolean {
  const [, , , , flags = 0, mark] = parts
  // Two bits of the first half may be set: universal (0x0200) and group (0x0100).
  return (flags & ~0x0300) === 0 && mark === 0x5efe
}

/** One address is a network of one. */
function parseNetwork(text: string): [Address, number] {
  if (text.includes('/')) return ipaddr.parseCIDR(text)
  const address = ipaddr.parse(text)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}

/**
 * The addresses of a name; of an address itself. `node:dns` would ask the C library, which keeps a thread until the name
 * servers answer. The runtime has one such thread for each processor, and also reads files and connects by name with them: a
 * few names of a stranger whose name servers are silent would stop all of that. c-ares keeps no thread.
 */
export async function resolveHost(host: string): Promise<readonly string[]> {
  if (isIP(host) !== 0) return [host]
  return (await Bun.dns.lookup(host, { backend: 'c-ares' })).map(({ address }) => address)
}

/** The host of a URL as `node:net` knows it: without the brackets of IPv6. */
export function hostOf({ hostname }: URL): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
}

/** The connection goes to what was checked: whatever the name means by then, nobody asks again. */
export function lookupOf(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }))
  return (_host, options, callback) => {
    if (options.all) callback(null, all)
    else callback(null, all[0]?.address ?? '', all[0]?.family)
  }
}
