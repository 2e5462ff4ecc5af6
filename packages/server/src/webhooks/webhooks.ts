import { type HookType, participantHookTypes } from '@ringwire/protocol/backend'
import type { WakeDevice } from '@ringwire/protocol/webhook-events'
import type { RingingCall } from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import { wakeAgainBody } from '../call/hook.ts'
import type { Answer, Post } from '../outgoing/post.ts'
import { StoreError } from '../ports/store-error.ts'
import {
  type Attempted,
  type Claimed,
  type FailedDelivery,
  newDeliveryId,
  type Taken,
  type WebhookEndpoint,
  type WebhookStore,
} from '../ports/webhooks.ts'
import { createLag } from './lag.ts'
import { createLeftOver, isGone, isListener, isListenerHere } from './listeners.ts'
import { signWebhook } from './signature.ts'
import { ringEndOf, type WakeHook } from './wake-hook.ts'

const secondMs = 1_000
const minuteMs = 60_000
const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** How long after each attempt that failed the next one comes, the last one again and again [HOOK3]. In ms. */
const backoffMs = [
  5 * secondMs,
  30 * secondMs,
  2 * minuteMs,
  10 * minuteMs,
  hourMs,
  3 * hourMs,
  6 * hourMs,
  12 * hourMs,
  dayMs,
]
/** An attempt that would be later than this after the event is not made, unless it is asked for [HOOK3]. In ms. */
export const giveUpMs = 3 * dayMs
/** What `call.wake` needs beside was not there: it is looked again so long after, and that is no attempt. In ms. */
const unreadMs = secondMs
/** Of the time until the next attempt, so much more or less: what failed together does not come again together. */
const jitter = 0.2
/** So many requests to one endpoint at once, from one node: a slow one keeps no other one waiting. */
const atOnce = 10
/**
 * Calls come first: while this process commits steps of them and the event loop is further behind than this, webhooks come in
 * rounds with a pause between them. In ms. Lag alone says too little: on a slow machine, webhooks make it themselves.
 */
const behindMs = 1.5
export const pauseMs = 40
/** So often it is looked for what is due, and which endpoints there are, in ms. */
const pollMs = 500
// A little less than two polls: a refresh takes its time.
const refreshMs = 900
/** So often in a look, at the most, what waits behind failed ones is put off. */
const putOffRounds = 10
/** Old deliveries are removed this often, and this long after they ended. In ms. */
const pruneMs = 10 * minuteMs
export const keptDeliveriesMs = { delivered: 3 * dayMs, failed: 30 * dayMs }
/** How often a node looks whether `ringwire webhooks listen` still runs, in ms. */
const listenersMs = 2_000
/** A stop waits this long for what is under way, in ms. */
const graceMs = 1_000

/** What became of an attempt; `repeated`: it failed, and is made again. */
export type DeliveryResult = 'delivered' | 'repeated' | 'failed'

/** Which attempt it was. */
export interface Attempt {
  readonly delivery: Claimed
  readonly endpoint: WebhookEndpoint
  /** What was answered; null: nothing. */
  readonly status: number | null
  readonly afterMs: number
}

export interface WebhooksOptions {
  readonly store: WebhookStore
  readonly post: Post
  /** Sends to this machine; without it `post` does. */
  readonly postHere?: Post
  /** Completes `call.wake` for each attempt. */
  readonly wakeHook: WakeHook
  /** The clock that calls go by. */
  readonly now: () => number
  readonly onResult: (result: DeliveryResult, attempt: Attempt) => void
  /** A delivery failed for good [LOG2]. */
  readonly onFailed: (failed: FailedDelivery) => void
  readonly onError: (error: unknown) => void
  /** Tests do not wait for hours. */
  readonly backoffMs?: readonly number[]
  /** How calls are let go first; tests count it. */
  readonly pause?: () => Promise<void>
}

export interface Webhooks {
  /** Knows the endpoints once it resolves: what is committed before that is told to none. */
  start(): Promise<void>
  /** A step was committed by this process: who asked for it is told at once. */
  committed(step: Step): void
  /** Whether an endpoint of the product hears call.wake, as far as this process knows. */
  hearsWakes(product: string): boolean
  /** Sends call.wake once more, for devices that fell asleep while the call rings [HOOK2]. */
  wokenAgain(call: RingingCall, devices: readonly WakeDevice[]): Promise<void>
  /** Whether an endpoint of the product hears call.ended, as far as this process knows. */
  hearsEnds(product: string): boolean
  /** Products with an endpoint that hears who comes online; another set where they changed. */
  hearingPresence(): ReadonlySet<string>
  /** An endpoint, or a delivery of it, was changed by this process. */
  changed(endpointId: string): Promise<void>
  stop(): Promise<void>
}

/** Delivers what commits wrote for endpoints [HOOK3]. Every node does, each what it claims; none leads. */
export function createWebhooks(options: WebhooksOptions): Webhooks {
  const {
    store,
    post,
    postHere = post,
    wakeHook,
    now,
    onResult,
    onFailed,
    onError,
    pause = () => Bun.sleep(pauseMs),
  } = options
  let known: readonly WebhookEndpoint[] = []
  let endpoints = new Map<string, WebhookEndpoint>()
  let ofProduct = new Map<string, readonly WebhookEndpoint[]>()
  let presence: ReadonlySet<string> = new Set()
  /** Those for which something may be due: no other is looked at. */
  const asked = new Set<string>()
  /** Requests under way, and results that are not stored yet, by endpoint. */
  const busy = new Map<string, number>()
  const underWay = new Set<Promise<void>>()
  let results: { readonly endpointId: string; readonly attempted: Attempted }[] = []
  let isWorking = false
  let isAgain = false
  /** Whether a step was committed since the last round. */
  let isCalled = false
  let isPolling = false
  let isStopped = false
  let isAway = false
  let refreshedAt = Number.NEGATIVE_INFINITY
  let prunedAt = performance.now()
  let lookedAt = Number.NEGATIVE_INFINITY
  let timer: ReturnType<typeof setInterval> | undefined
  const stopping = new AbortController()
  const lag = createLag()
  const leftOver = createLeftOver(() => performance.now())

  async function refresh(): Promise<void> {
    const all = await store.refresh()
    refreshedAt = performance.now()
    if (all === known) return
    known = all
    const enabled = all.filter((endpoint) => endpoint.enabled && (!isListener(endpoint) || isListenerHere(endpoint)))
    // What waited for an endpoint while it was disabled, or was written for it meanwhile, goes out.
    for (const { id } of enabled) if (!endpoints.has(id)) asked.add(id)
    endpoints = new Map(enabled.map((endpoint) => [endpoint.id, endpoint]))
    ofProduct = Map.groupBy(enabled, ({ product }) => product)
    const hearing = new Set(enabled.flatMap((endpoint) => (hearsPresence(endpoint) ? [endpoint.product] : [])))
    if (hearing.symmetricDifference(presence).size > 0) presence = hearing
  }

  /** What ended is stored before more is taken on: a delivery that is done makes way for the next one of its call. */
  async function storeResults(): Promise<void> {
    if (results.length === 0) return
    const batch = results
    results = []
    try {
      await store.settle(batch.map(({ attempted }) => attempted))
    } catch (error) {
      results = [...batch, ...results]
      throw error
    }
    for (const { endpointId } of batch) busy.set(endpointId, (busy.get(endpointId) ?? 1) - 1)
  }

  /** A claim that fails is made again with the next round. */
  async function claim(wanted: ReadonlyMap<string, number>): Promise<Taken> {
    try {
      return await store.claim(wanted)
    } catch (error) {
      for (const id of wanted.keys()) asked.add(id)
      throw error
    }
  }

  async function takeOn(): Promise<void> {
    const wanted = new Map<string, number>()
    for (const id of asked) {
      const free = atOnce - (busy.get(id) ?? 0)
      if (free > 0 && endpoints.has(id)) wanted.set(id, free)
    }
    asked.clear()
    if (wanted.size === 0) return
    const { claimed: taken, isMore } = await claim(wanted)
    if (isMore) {
      isAgain = true
      for (const id of wanted.keys()) asked.add(id)
    }
    for (const claimed of taken) {
      const endpoint = endpoints.get(claimed.endpointId)
      if (endpoint === undefined) continue
      busy.set(endpoint.id, (busy.get(endpoint.id) ?? 0) + 1)
      const done = deliver(claimed, endpoint).then((attempted) => {
        underWay.delete(done)
        results.push({ endpointId: endpoint.id, attempted })
        asked.add(endpoint.id)
        void work()
      })
      underWay.add(done)
    }
  }

  /** One round at a time; what comes meanwhile is in the next one. */
  async function work(): Promise<void> {
    isAgain = true
    if (isWorking) return
    isWorking = true
    try {
      while (isAgain) {
        isAgain = false
        const isBehind = (await lag.look()) > behindMs
        if (isBehind && isCalled && !isStopped) await pause()
        isCalled = false
        await storeResults()
        if (!isStopped) await takeOn()
      }
      isAway = false
    } catch (error) {
      failed(error)
    } finally {
      isWorking = false
    }
  }

  /** Said once, however long the store is away. */
  function failed(error: unknown): void {
    const isStore = error instanceof StoreError
    if (!isStore || !isAway) onError(error)
    isAway ||= isStore
  }

  /**
   * Of `call.wake` a part is made for each attempt: then what an endpoint answers must not keep its ticket. Undefined: that
   * part could not be made.
   */
  async function attempt(claimed: Claimed, endpoint: WebhookEndpoint, at: number): Promise<Answer | undefined> {
    if (claimed.type !== 'call.wake') return send(claimed, endpoint, at)
    const whole = await wakeHook(endpoint.product, claimed.body).catch((error) => void failed(error))
    if (whole === undefined) return undefined
    const answer = await send({ ...claimed, body: whole.body }, endpoint, at)
    return answer.ok ? { ...answer, body: answer.body.replaceAll(whole.ticket, '[ring ticket]') } : answer
  }

  function send({ id, body }: Claimed, endpoint: WebhookEndpoint, at: number): Promise<Answer> {
    const timestamp = Math.floor(at / secondMs)
    const ask = isListener(endpoint) ? postHere : post
    return ask({
      url: endpoint.url,
      headers: {
        'content-type': 'application/json',
        'user-agent': 'Ringwire',
        'webhook-id': id,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': signWebhook({ id, timestamp, body }, secretsOf(endpoint, at)),
      },
      body,
      signal: stopping.signal,
    })
  }

  async function deliver(claimed: Claimed, endpoint: WebhookEndpoint): Promise<Attempted> {
    const { id } = claimed
    const at = now()
    const ringEnd = claimed.type === 'call.wake' ? ringEndOf(claimed.body) : Number.POSITIVE_INFINITY
    const unsent = { id, afterMs: 0, at, responseStatus: null, response: null }
    // Nobody failed: it makes way for what came after it in its call.
    if (at >= ringEnd) return { ...unsent, outcome: 'failed', response: 'the ring was over' }
    // Nobody was there to make it in time, or its endpoint was disabled.
    if (at > claimed.createdAt + giveUpMs && !claimed.isAskedFor) {
      onResult('failed', { delivery: claimed, endpoint, status: null, afterMs: 0 })
      onFailed({ delivery: claimed, endpoint, cause: 'too old' })
      return { ...unsent, outcome: 'failed', response: 'too old' }
    }
    const answer = await attempt(claimed, endpoint, at)
    if (answer === undefined) return { ...unsent, outcome: 'released', afterMs: unreadMs }
    if (!answer.ok && isStopped) return { ...unsent, outcome: 'released' }
    const status = answer.ok ? answer.status : null
    // PostgreSQL stores no NUL in a text.
    const response = (answer.ok ? answer.body : answer.error).replaceAll('\0', '\ufffd')
    const made = { delivery: claimed, endpoint, status, afterMs: Math.max(0, now() - at) }
    const said = { id, at: now(), responseStatus: status, response }
    if (status !== null && status >= 200 && status < 300) {
      onResult('delivered', made)
      return { ...said, outcome: 'delivered', afterMs: 0 }
    }
    // On a connection that was kept nobody may have been there any more: it goes at once, on a new one.
    const wasStale = !answer.ok && answer.wasStale === true
    // Then the one attempt that was asked for may not have been made at all, and no other is due.
    if (wasStale && claimed.isAskedFor && now() > claimed.createdAt + giveUpMs)
      return { ...unsent, outcome: 'released' }
    const afterMs = wasStale ? 0 : nextAfter(claimed.attempts)
    // After the ring `call.wake` is not sent: then it has failed now.
    if (status !== 410 && now() + afterMs <= Math.min(claimed.createdAt + giveUpMs, ringEnd)) {
      onResult('repeated', made)
      return { ...said, outcome: 'pending', afterMs }
    }
    onResult('failed', made)
    const cause = answer.ok ? `status ${answer.status}` : (answer.cause ?? answer.error)
    onFailed({ delivery: claimed, endpoint, cause })
    if (status === 410) await disable(endpoint)
    return { ...said, outcome: 'failed', afterMs: 0 }
  }

  function nextAfter(attempts: number): number {
    const delays = options.backoffMs ?? backoffMs
    const delay = delays[Math.min(attempts, delays.length - 1)] ?? 0
    return Math.round(delay * (1 - jitter + 2 * jitter * Math.random()))
  }

  /** Gone for good, says the endpoint [HOOK3]. */
  async function disable({ id, product }: WebhookEndpoint): Promise<void> {
    try {
      await store.changeEndpoint(product, id, { enabled: false })
      await refresh()
    } catch (error) {
      failed(error)
    }
  }

  /** Nothing waits for it. */
  async function prune(): Promise<void> {
    prunedAt = performance.now()
    const { delivered, failed: failedMs } = keptDeliveriesMs
    try {
      while (!isStopped && (await store.prune(now() - delivered, now() - failedMs)) > 0) await Bun.sleep(10)
    } catch (error) {
      if (!isStopped) failed(error)
    }
  }

  function hearing(product: string, type: HookType): readonly WebhookEndpoint[] {
    return ofProduct.get(product)?.filter(({ events }) => events === null || events.includes(type)) ?? []
  }

  /** A command that was killed could not remove its endpoint. */
  async function removeGone(): Promise<void> {
    lookedAt = performance.now()
    const listeners = known.filter(isListener)
    const old = new Set(leftOver(listeners))
    const isOver = async (one: WebhookEndpoint) => old.has(one) || (isListenerHere(one) && (await isGone(one)))
    const over = await Promise.all(listeners.map(isOver))
    for (const [index, { id, product }] of listeners.entries()) {
      if (over[index] && !isStopped) await store.removeEndpoint(product, id)
    }
  }

  async function poll(): Promise<void> {
    if (isPolling) return
    isPolling = true
    try {
      if (performance.now() - refreshedAt >= refreshMs) await refresh()
      if (performance.now() - prunedAt >= pruneMs) void prune()
      if (performance.now() - lookedAt >= listenersMs) removeGone().catch(failed)
      const ids = endpoints.size > 0 ? (await store.due()).filter((id) => endpoints.has(id)) : []
      for (const id of ids) asked.add(id)
      for (let n = 0; n < putOffRounds && ids.length > 0 && (await store.putOff(ids)); n++);
    } catch (error) {
      failed(error)
    }
    isPolling = false
    await work()
  }

  return {
    async start() {
      // That asks for what an earlier process left behind.
      await refresh()
      timer = setInterval(() => void poll(), pollMs)
      void work()
    },
    committed({ call }) {
      isCalled = true
      const told = ofProduct.get(call.product)
      if (told === undefined) return
      for (const { id } of told) asked.add(id)
      void work()
    },
    hearsWakes: (product) => hearing(product, 'call.wake').length > 0,
    async wokenAgain(call, devices) {
      const told = hearing(call.product, 'call.wake')
      if (told.length === 0) return
      const at = now()
      const event = { subject: call.callUuid, version: call.version, type: 'call.wake', createdAt: at }
      const body = wakeAgainBody(call, at, devices)
      await store.add(told.map(({ id }) => ({ ...event, id: newDeliveryId(at), endpointId: id, body })))
      for (const { id } of told) asked.add(id)
      void work()
    },
    hearsEnds: (product) => hearing(product, 'call.ended').length > 0,
    hearingPresence: () => presence,
    async changed(endpointId) {
      await refresh()
      asked.add(endpointId)
      void work()
    },
    async stop() {
      isStopped = true
      clearInterval(timer)
      await Promise.race([Promise.all(underWay), Bun.sleep(underWay.size > 0 ? graceMs : 0)])
      stopping.abort()
      await Promise.all(underWay)
      while (isWorking) await Bun.sleep(5)
      await work()
    },
  }
}

const presenceTypes: readonly HookType[] = participantHookTypes
const hearsPresence = ({ events }: WebhookEndpoint) => events?.some((type) => presenceTypes.includes(type)) === true

/** The current one first. */
function secretsOf({ secret, oldSecret, oldSecretUntil }: WebhookEndpoint, at: number): string[] {
  return oldSecret !== null && oldSecretUntil !== null && oldSecretUntil > at ? [secret, oldSecret] : [secret]
}
