import type { HookType } from '@ringwire/protocol/backend'
import type { Participant } from '../call/call.ts'
import type { MaybePromise } from './maybe.ts'

/** How long a claimed delivery is left to the process that claimed it, in ms: longer than an attempt takes. */
export const claimMs = 30_000

/** An endpoint for the webhooks of a product [HOOK1]. */
export interface WebhookEndpoint {
  readonly id: string
  readonly product: string
  readonly url: string
  /** Null: all types of calls. */
  readonly events: readonly HookType[] | null
  readonly description: string | null
  readonly enabled: boolean
  readonly secret: string
  /** The secret before it signs, too, until its time is over. */
  readonly oldSecret: string | null
  readonly oldSecretUntil: number | null
  readonly createdAt: number
}

export type EndpointChanges = Partial<Omit<WebhookEndpoint, 'id' | 'product' | 'createdAt'>>

/** One event on its way to one endpoint. */
export interface Delivery {
  /** The `webhook-id`; later ones are greater, as text. */
  readonly id: string
  readonly endpointId: string
  /** The call that it is about; what is about none is about itself. */
  readonly subject: string
  readonly version: number
  readonly type: string
  /** As it is sent. */
  readonly body: string
  readonly createdAt: number
}

/** A delivery that is to be attempted now. */
export interface Claimed extends Delivery {
  /** Attempts that failed. */
  readonly attempts: number
  /** It was over, and somebody asked for one attempt more: that is made however old it is [HOOK3]. */
  readonly isAskedFor: boolean
}

/** It is not attempted any more. */
export interface FailedDelivery {
  readonly delivery: Claimed
  readonly endpoint: WebhookEndpoint
  /** The status that was answered, or what went wrong. */
  readonly cause: string
}

/** Of a delivery that was made at an instant: later ones of one process are greater (RFC 9562 section 5.7). */
export function newDeliveryId(at: number): string {
  return `msg_${Bun.randomUUIDv7('hex', Math.trunc(at)).replaceAll('-', '')}`
}
/** Less than the id of everything that is made at an instant or later, and greater than the others. */
export const deliveryIdAt = (at: number) => `msg_${Math.max(0, Math.trunc(at)).toString(16).padStart(12, '0')}`
export const isDeliveryId = (text: string) => /^msg_[0-9a-f]{32}$/.test(text)

export interface Taken {
  readonly claimed: readonly Claimed[]
  /** An endpoint that got less than it wanted may have more: the next claim has to ask for it again. */
  readonly isMore: boolean
}

/** What became of an attempt. */
export interface Attempted {
  readonly id: string
  /** `pending`: it is attempted again, `afterMs` from now. `released`: it does not count as an attempt. */
  readonly outcome: 'delivered' | 'failed' | 'pending' | 'released'
  readonly afterMs: number
  readonly at: number
  /** Null: there was none. */
  readonly responseStatus: number | null
  readonly response: string | null
}

export interface DeliveryRecord extends Omit<Delivery, 'body' | 'subject' | 'version'> {
  readonly status: 'pending' | 'delivered' | 'failed'
  readonly attempts: number
  /** Null: it is over. */
  readonly dueAt: number | null
  readonly endedAt: number | null
  readonly responseStatus: number | null
  /** The first KiB of the answer, or the error. */
  readonly response: string | null
}

/** The oldest delivery of an enabled endpoint that failed, and is to be attempted again. */
export interface StuckDelivery extends DeliveryRecord {
  readonly product: string
  readonly url: string
}

export interface DeliveryQuery {
  readonly endpointId: string
  readonly status: DeliveryRecord['status'] | undefined
  readonly limit: number
  /** Only those before this one: the newest come first. */
  readonly before: string | undefined
}

export interface EndpointStore {
  /**
   * All endpoints of all products, as they are stored now; commits of this process go by them from then on. Only those that
   * changed since the last call are read. The same list where none did.
   */
  refresh(): MaybePromise<readonly WebhookEndpoint[]>
  endpointsOf(product: string): MaybePromise<readonly WebhookEndpoint[]>
  addEndpoint(endpoint: WebhookEndpoint): MaybePromise<void>
  /** The endpoint as it is then; undefined where there is none. */
  changeEndpoint(product: string, id: string, changes: EndpointChanges): MaybePromise<WebhookEndpoint | undefined>
  /**
   * With its deliveries. If there are thousands, the rest of them goes later: nobody can list those of an endpoint that is not
   * there. False if there is no such endpoint.
   */
  removeEndpoint(product: string, id: string): MaybePromise<boolean>
}

export interface DeliveryStore {
  /** Adds deliveries that are about no call. */
  add(deliveries: readonly Delivery[]): MaybePromise<void>
  /**
   * The endpoints with a delivery whose time has come. The cost of this read grows with the number of endpoints that have
   * a pending delivery.
   */
  due(): MaybePromise<readonly string[]>
  /** Takes deliveries whose time has come: of each endpoint at most the number that `wanted` gives. */
  claim(wanted: ReadonlyMap<string, number>): MaybePromise<Taken>
  /** Deliveries that wait behind a failed one are due again with it: until then no claim has to look past them. */
  settle(attempted: readonly Attempted[]): MaybePromise<void>
  /**
   * The same for what was committed after one had failed. Of each endpoint it looks at some of what is due first; true where it
   * put anything off, and there may be more.
   */
  putOff(endpointIds: readonly string[]): MaybePromise<boolean>
  /** The newest first. */
  deliveries(query: DeliveryQuery): MaybePromise<readonly DeliveryRecord[]>
  /**
   * Of each enabled endpoint the oldest delivery that failed and is to be attempted again, if there is one. The cost of this
   * read grows with the number of endpoints that have a pending delivery.
   */
  stuck(): MaybePromise<readonly StuckDelivery[]>
  /** Has a delivery that is over attempted once more, now. False where there is none. */
  retry(endpointId: string, id: string): MaybePromise<boolean>
  /** Blanks what names a participant in what is kept for endpoints of its product [SRV2], and what was answered; answers in how many, step by step and in all. */
  erase(participant: Participant, onErased?: (count: number) => MaybePromise<unknown>): Promise<number>
  /** Removes some of what ended before these instants, or was for a removed endpoint; answers how many, 0 when none is left. */
  prune(deliveredBefore: number, failedBefore: number): MaybePromise<number>
}

/**
 * Webhook endpoints, and what is on its way to them [HOOK3].
 *
 * Guarantees of every adapter:
 * - A step that `CallStore` writes has its deliveries in the same commit, to every endpoint that `refresh` has answered last,
 *   that is enabled and wants its type: both are there or neither, also after `kill -9`. If there is no such endpoint,
 *   nothing is written and nothing is read.
 * - A delivery stays pending until it was attempted with success, or failed for good. The claims of a process that died go to
 *   others: after `claimMs`, or at the next start of a store that only one process writes.
 * - Of one subject, deliveries to one endpoint are claimed in the order of versions: none while an older one is pending. Two
 *   that claim at once never get the same one.
 * - Rejections are `StoreError`s.
 */
export interface WebhookStore extends EndpointStore, DeliveryStore {}
