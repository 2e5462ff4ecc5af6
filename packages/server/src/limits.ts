/**
 * Limits of requests [TOK5, INV8].
 *
 *   const limits = createLimits(config)
 *   limits.tokenRequest(address), .tokenKey(keyId), .failedAuthentication(address)
 *   limits.invite(caller, callee), .refundInvite(caller, callee)
 *
 * Each answers { ok: true } or { ok: false, retryAfterMs }. A limit that is off always answers ok.
 */
import ipaddr from 'ipaddr.js'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { type Participant, participantKey } from './call/call.ts'
import type { Config, Rate } from './config.ts'

export type Limit = { readonly ok: true } | { readonly ok: false; readonly retryAfterMs: number }

export interface Limits {
  /** One token request from this address (IPv6: from its /64). */
  tokenRequest(address: string | undefined): Promise<Limit>
  /** One token request that this key authenticated. */
  tokenKey(keyId: string): Promise<Limit>
  /** One failed authentication from this address: call it for failures alone, so that nothing valid is ever refused. */
  failedAuthentication(address: string | undefined): Promise<Limit>
  /** One invite, counted for the caller and for the pair; refused by either it counts for neither. */
  invite(caller: Participant, callee: Participant): Promise<Limit>
  /** Takes an invite back that turned out to be none, as a repeat [INV3]. */
  refundInvite(caller: Participant, callee: Participant): Promise<void>
}

type LimitsConfig = Pick<Config, 'tokenRateIp' | 'tokenRateKey' | 'tokenFailRateIp' | 'inviteRate' | 'pairInviteRate'>

/** Enough to count everybody on one node; over it the oldest count is forgotten, so memory has a bound. */
const maxKeys = 50_000

export function createLimits(config: LimitsConfig, options: { maxKeys?: number } = {}): Limits {
  const counter = (rate: Rate | null) => createCounter(rate, options.maxKeys ?? maxKeys)
  const addresses = counter(config.tokenRateIp)
  const keys = counter(config.tokenRateKey)
  const failures = counter(config.tokenFailRateIp)
  const callers = counter(config.inviteRate)
  const pairs = counter(config.pairInviteRate)
  const pairKey = (caller: Participant, callee: Participant) => participantKey(caller) + participantKey(callee)

  return {
    tokenRequest: (address) => addresses.consume(addressKey(address)),
    tokenKey: (keyId) => keys.consume(keyId),
    failedAuthentication: (address) => failures.consume(addressKey(address)),
    async invite(caller, callee) {
      // The pair first: where the caller's limit then refuses, nobody else can have been refused for the pair alone.
      const pair = pairKey(caller, callee)
      const byPair = await pairs.consume(pair)
      if (!byPair.ok) return byPair
      const byCaller = await callers.consume(participantKey(caller))
      if (!byCaller.ok) await pairs.refund(pair)
      return byCaller
    },
    async refundInvite(caller, callee) {
      await Promise.all([callers.refund(participantKey(caller)), pairs.refund(pairKey(caller, callee))])
    },
  }
}

export interface Counter {
  consume(key: string): Promise<Limit>
  refund(key: string): Promise<void>
  /** How many keys are counted right now. */
  size(): number
}

const allowed: Limit = { ok: true }

/** Counts per key in fixed windows. The window of a key starts with its first request. */
export function createCounter(rate: Rate | null, bound: number): Counter {
  if (rate === null) return { consume: async () => allowed, refund: async () => {}, size: () => 0 }
  const limiter = new RateLimiterMemory({ points: rate.count, duration: rate.seconds, keyPrefix: '' })
  /** Key → end of its window. Windows are equally long, so the order of insertion is the order of their ends. */
  const windows = new Map<string, number>()

  function track(key: string, firstInWindow: boolean): void {
    if (!firstInWindow) return
    const now = performance.now()
    windows.delete(key)
    windows.set(key, now + rate!.seconds * 1000)
    for (const [oldest, end] of windows) {
      if (end > now && windows.size <= bound) break
      windows.delete(oldest)
      void limiter.delete(oldest)
    }
  }

  return {
    async consume(key) {
      try {
        track(key, (await limiter.consume(key)).isFirstInDuration)
        return allowed
      } catch (refusal) {
        if (!(refusal instanceof RateLimiterRes)) throw refusal
        // A refused request does not count, so that a refund really makes room.
        await limiter.reward(key, 1)
        return { ok: false, retryAfterMs: Math.max(1, Math.ceil(refusal.msBeforeNext)) }
      }
    },
    async refund(key) {
      const end = windows.get(key)
      if (end !== undefined && end > performance.now()) await limiter.reward(key, 1)
    },
    size: () => windows.size,
  }
}

/** Whom an address stands for: IPv4 alone, also where it comes mapped into IPv6; IPv6 by /64, which is one customer. */
export function addressKey(address: string | undefined): string {
  if (address === undefined || !ipaddr.isValid(address)) return 'unknown'
  const parsed = ipaddr.process(address)
  if (parsed.kind() === 'ipv4') return parsed.toString()
  return `${(parsed as ipaddr.IPv6).parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`
}
