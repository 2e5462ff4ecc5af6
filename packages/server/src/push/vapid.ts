import type { VapidKey } from '../config/push-keys.ts'
import { signJwt } from './jwt.ts'

/** A day at the most (RFC 8292 section 2). In ms. */
const lifetimeMs = 12 * 3_600_000
const renewMs = 3_600_000
/** Endpoints come from strangers: this many origins are remembered. */
const mostOrigins = 100

/** The Authorization header for a push service, by its origin. */
export function createVapid({ key, publicKey }: VapidKey, subject: string, now: () => number) {
  const tokens = new Map<string, { token: string; expiresAt: number }>()
  return (origin: string): string => {
    const known = tokens.get(origin)
    if (known !== undefined && known.expiresAt - now() > renewMs) return headerOf(known.token, publicKey)
    const expiresAt = now() + lifetimeMs
    const token = signJwt('ES256', key, { aud: origin, exp: Math.floor(expiresAt / 1000), sub: subject })
    if (tokens.size >= mostOrigins) tokens.clear()
    tokens.set(origin, { token, expiresAt })
    return headerOf(token, publicKey)
  }
}

const headerOf = (token: string, publicKey: string) => `vapid t=${token}, k=${publicKey}`
