import { lookup } from 'node:dns/promises'
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
    // A zone (fe80::1%eth0) is of a link, and nowhere else.
    return isIP(text) === 0 || text.includes('%') ? undefined : ipaddr.process(text)
  }

  return {
    allows(text) {
      const address = read(text)
      // Anything but unicast is private, of the link, of the machine, reserved, or hides an IPv4 address in itself.
      return (
        address !== undefined &&
        (isNamed(address) || (address.range() === 'unicast' && !isMetadata(address) && !isCompatible(address)))
      )
    },
    allowsPlain(text) {
      const address = read(text)
      return address !== undefined && address.range() === 'loopback' && isNamed(address)
    },
  }
}

/** Where clouds answer a machine with its own credentials, at addresses that look public. */
const metadata = new Set(['168.63.129.16', '100.100.100.200', '192.0.0.192'])
const isMetadata = (address: Address) => metadata.has(address.toString())

/** An IPv4 address in the way of before (RFC 4291 section 2.5.5.1): `::127.0.0.1`. */
const compatible = ipaddr.IPv6.parseCIDR('::/96')
const isCompatible = (address: Address) => address instanceof ipaddr.IPv6 && address.match(compatible)

/** One address is a network of one. */
function parseNetwork(text: string): [Address, number] {
  if (text.includes('/')) return ipaddr.parseCIDR(text)
  const address = ipaddr.parse(text)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}

/** The addresses of a name; of an address itself. */
export async function resolveHost(host: string): Promise<readonly string[]> {
  if (isIP(host) !== 0) return [host]
  return (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address)
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
