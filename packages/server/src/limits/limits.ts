/**
 * Limits of requests [TOK5, INV8, HTTP1, WS7].
 *
 *   const limits = createLimits(config, counters)
 *   limits.tokenRequest(address), .tokenKey(keyId), .failedAuthentication(address)
 *   limits.serverRequest(address), .serverKey(keyId)
 *   limits.invite(caller, callee), .refundInvite(caller, callee)
 *   const local = createLocalLimits(config, localCounters)
 *   local.request(address), .stranger(address), .participantRequest(participant)
 *   local.connection(participant), .refundConnection(participant)
 *
 * Each answers { ok: true } or { ok: false, retryAfterMs }; for an invite also which limit it was. A limit that is off
 * always answers ok.
 */
import ipaddr from 'ipaddr.js'
import { type Participant, participantKey } from '../call/call.ts'
import type { InviteRate } from '../call/invite.ts'
import type { Config, Rate } from '../config/config.ts'
import type { Budget, Counters } from './counters.port.ts'

export type Limit = { readonly ok: true } | { readonly ok: false; readonly retryAfterMs: number }

export interface Limits {
  /** One token request from this address (IPv6: from its /64). */
  tokenRequest(address: string | undefined): Promise<Limit>
  /** One token request that this key authenticated. */
  tokenKey(keyId: string): Promise<Limit>
  /** The same for requests to `/v1/server/…`, which have a budget of their own [SRV1]. */
  serverRequest(address: string | undefined): Promise<Limit>
  serverKey(keyId: string): Promise<Limit>
  /** One failure of product credentials from this address: only call it for failures, so that nothing valid is refused. */
  failedAuthentication(address: string | undefined): Promise<Limit>
  /** One invite, counted for the caller and for the pair; refused by either it counts for neither. */
  invite(caller: Participant, callee: Participant): Promise<InviteRate>
  /** Takes an invite back that turned out to be none, as a repeat [INV3]. */
  refundInvite(caller: Participant, callee: Participant): Promise<void>
}

type LimitsConfig = Pick<Config, 'tokenRateIp' | 'tokenRateKey' | 'tokenFailRateIp' | 'inviteRate' | 'pairInviteRate'>

export function createLimits(config: LimitsConfig, counters: Counters): Limits {
  const addresses = createLimit(counters, 'token-address', config.tokenRateIp)
  const keys = createLimit(counters, 'token-key', config.tokenRateKey)
  const serverAddresses = createLimit(counters, 'server-address', config.tokenRateIp)
  const serverKeys = createLimit(counters, 'server-key', config.tokenRateKey)
  const failures = createLimit(counters, 'failure-address', config.tokenFailRateIp)
  const callers = createLimit(counters, 'invite-caller', config.inviteRate)
  const pairs = createLimit(counters, 'invite-pair', config.pairInviteRate)
  const pairKey = (caller: Participant, callee: Participant) => participantKey(caller) + participantKey(callee)

  return {
    tokenRequest: (address) => addresses.consume(addressKey(address)),
    tokenKey: (keyId) => keys.consume(keyId),
    serverRequest: (address) => serverAddresses.consume(addressKey(address)),
    serverKey: (keyId) => serverKeys.consume(keyId),
    failedAuthentication: (address) => failures.consume(addressKey(address)),
    async invite(caller, callee) {
      // The pair first: if the caller's limit then refuses, nobody else can have been refused just for the pair.
      const pair = pairKey(caller, callee)
      const byPair = await pairs.consume(pair)
      if (!byPair.ok) return { ...byPair, limit: 'pair_invites' }
      const byCaller = await callers.consume(participantKey(caller))
      if (byCaller.ok) return byCaller
      await pairs.refund(pair)
      return { ...byCaller, limit: 'invites' }
    },
    async refundInvite(caller, callee) {
      await Promise.all([callers.refund(participantKey(caller)), pairs.refund(pairKey(caller, callee))])
    },
  }
}

/** Limits that protect one process, counted only by it and at once: to refuse has to cost less than to answer. */
export interface LocalLimits {
  /** One request of the REST API from this address, but for those that have a limit of their own. */
  request(address: string | undefined): Limit
  /** One upgrade from this address without a good token: upgrades with a good one do not count. */
  stranger(address: string | undefined): InsistentLimit
  /** One request for a participant's history or ICE servers. */
  participantRequest(participant: Participant): Limit
  /** One socket that a participant opens, to resume or not. */
  connection(participant: Participant): InsistentLimit
  /** The service could not let it in. */
  refundConnection(participant: Participant): void
}

/** `isInsistent`: it was refused often, and still comes. */
export type InsistentLimit = Limit & { readonly isInsistent: boolean }

/** The number of sockets of a participant that are refused in words, in the time for which their limit counts. */
const politeRefusals = 20
/** The number of strangers of an address that hear at once why not, in the time for which theirs counts. */
const promptRefusals = 50

/** Counters that answer at once. */
export interface LocalCounters {
  counter(name: string, budget: Budget): { consume(subject: string): number; refund(subject: string): void }
}

type LocalLimitsConfig = Pick<Config, 'restRateIp' | 'restRate' | 'connectRate'>

export function createLocalLimits(config: LocalLimitsConfig, counters: LocalCounters): LocalLimits {
  const limitOf = (name: string, rate: Rate | null) => {
    const counter = rate === null ? undefined : counters.counter(name, rate)
    return (subject: string) => limitAfter(counter?.consume(subject) ?? 0)
  }
  const addresses = limitOf('rest-address', config.restRateIp)
  const strangers = limitOf('stranger-address', config.restRateIp)
  const participants = limitOf('rest-participant', config.restRate)
  const connects = config.connectRate === null ? undefined : counters.counter('connections', config.connectRate)
  const refusals = limitOf(
    'refused-connections',
    config.connectRate && { ...config.connectRate, count: politeRefusals },
  )
  const prompt = limitOf('refused-strangers', config.restRateIp && { ...config.restRateIp, count: promptRefusals })
  return {
    request: (address) => addresses(addressKey(address)),
    stranger(address) {
      const key = addressKey(address)
      const limit = strangers(key)
      return { ...limit, isInsistent: !limit.ok || !prompt(key).ok }
    },
    participantRequest: (participant) => participants(participantKey(participant)),
    connection(participant) {
      const key = participantKey(participant)
      const limit = limitAfter(connects?.consume(key) ?? 0)
      return { ...limit, isInsistent: !limit.ok && !refusals(key).ok }
    },
    refundConnection: (participant) => connects?.refund(participantKey(participant)),
  }
}

export const allowed: Limit = { ok: true }
const limitAfter = (retryAfterMs: number): Limit => (retryAfterMs === 0 ? allowed : { ok: false, retryAfterMs })

/** A counter that says Limit; one without a rate never refuses. */
function createLimit(counters: Counters, name: string, rate: Rate | null) {
  const counter = rate === null ? undefined : counters.counter(name, rate)
  return {
    async consume(subject: string): Promise<Limit> {
      return limitAfter((await counter?.consume(subject)) ?? 0)
    },
    async refund(subject: string): Promise<void> {
      await counter?.refund(subject)
    },
  }
}

/** The party behind an address: IPv4 by itself, also where it comes mapped into IPv6; IPv6 by /64, which is one customer. */
export function addressKey(address: string | undefined): string {
  if (address === undefined || !ipaddr.isValid(address)) return 'unknown'
  const parsed = ipaddr.process(address)
  if (parsed.kind() === 'ipv4') return parsed.toString()
  return `${(parsed as ipaddr.IPv6).parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`
}
