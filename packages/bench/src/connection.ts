// How a client reaches a server.
import type { TLSOptions } from 'bun'

export interface Way {
  /** 127.0.0.1 without it. */
  hostname?: string
  /** Over TLS. The certificate is one that the benchmark made for itself, so nobody vouches for it. */
  isSecure?: boolean
}

export function connectOptions({ hostname = '127.0.0.1', isSecure = false }: Way): {
  hostname: string
  tls?: TLSOptions
} {
  return isSecure ? { hostname, tls: { rejectUnauthorized: false } } : { hostname }
}
