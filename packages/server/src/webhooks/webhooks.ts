import type { RingingCall } from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import { type WokenAgain, wakeAgainBody } from '../call/hook.ts'
import type { Cancel } from '../ports/clock.ts'
import { StoreError } from '../ports/store-error.ts'
import { type Delivery, newDeliveryId, type WebhookEndpoint, type WebhookStore } from '../ports/webhooks.ts'
import { every } from '../time/alarms.ts'
import { type AttemptsOptions, createAttempts } from './attempts.ts'
import { createClaims } from './claims.ts'
import { createEnabledEndpoints } from './enabled.ts'
import { createRounds } from './rounds.ts'
import { createUpkeep } from './upkeep.ts'

/** How often a node looks for deliveries that are due, and for endpoints that changed, in ms. */
const pollMs = 500
// A little less than two polls: a refresh takes its time.
const refreshMs = 900
/** How often in one look, at the most, a node puts off deliveries that wait behind failed ones. */
const putOffRounds = 10

export interface WebhooksOptions extends AttemptsOptions {
  readonly store: WebhookStore
  /** How calls are let go first; tests count it. */
  readonly pause?: () => Promise<void>
}

export interface Webhooks {
  /** Knows the endpoints once it resolves: earlier commits go to none. */
  start(): Promise<void>
  /** A step was committed by this process: its endpoints get it at once. */
  committed(step: Step): void
  /** Whether an endpoint of the product hears call.wake, as far as this process knows. */
  hearsWakes(product: string): boolean
  /** Sends call.wake once more for each of these people, whose devices fell asleep while the call rings [HOOK2]. */
  wokenAgain(call: RingingCall, woken: readonly WokenAgain[]): Promise<void>
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
  const { store, now } = options
  const stopping = new AbortController()
  const giveUp = new AbortController()
  const outage = createOutage(options.onError)
  const onError = outage.failed
  const enabled = createEnabledEndpoints(store)
  const claims = createClaims(store, enabled.get)

  /** Deliveries that waited for an endpoint while it was disabled, or were written for it meanwhile, go out. */
  const refresh = async () => claims.ask(await enabled.refresh())

  async function disable({ id, product }: WebhookEndpoint): Promise<void> {
    try {
      await store.changeEndpoint(product, id, { enabled: false })
      await refresh()
    } catch (error) {
      onError(error)
    }
  }

  const signals = { stopping: stopping.signal, giveUp: giveUp.signal }
  const attempt = createAttempts({ ...options, onError }, signals, disable)
  const rounds = createRounds({ ...options, ...signals, claims, attempt, onRound: outage.over, onError })
  const upkeep = createUpkeep({ ...options, ...signals, onError })

  async function look(): Promise<void> {
    const isOld = performance.now() - enabled.readAt() >= refreshMs
    // Asked for together: one statement of the store answers both.
    const [, due] = await Promise.all([isOld ? refresh() : undefined, enabled.isAny() ? store.due() : []])
    upkeep(enabled.stored())
    const ids = due.filter(enabled.get)
    claims.ask(ids)
    for (let n = 0; n < putOffRounds && ids.length > 0 && (await store.putOff(ids)); n++);
  }

  const polling = createPolling(() => look().catch(onError), rounds.work)
  const workOn = (of: readonly WebhookEndpoint[]) => {
    if (of.length === 0) return
    claims.ask(of.map(({ id }) => id))
    void rounds.work()
  }

  return {
    async start() {
      // That asks for what an earlier process left behind.
      await refresh()
      polling.start()
      void rounds.work()
    },
    committed({ call }) {
      rounds.called()
      workOn(enabled.of(call.product))
    },
    hearsWakes: (product) => enabled.hearing(product, 'call.wake').length > 0,
    async wokenAgain(call, woken) {
      const told = enabled.hearing(call.product, 'call.wake')
      const at = now()
      if (told.length > 0) await store.add(woken.flatMap((each) => wakesAgain(call, each, told, at)))
      workOn(told)
    },
    hearsEnds: (product) => enabled.hearing(product, 'call.ended').length > 0,
    hearingPresence: enabled.hearingPresence,
    async changed(endpointId) {
      await refresh()
      claims.ask([endpointId])
      void rounds.work()
    },
    async stop() {
      stopping.abort()
      polling.stop()
      await rounds.stop(() => giveUp.abort())
    },
  }
}

function wakesAgain(call: RingingCall, woken: WokenAgain, told: readonly WebhookEndpoint[], at: number): Delivery[] {
  const event = { subject: call.callUuid, version: call.version, type: 'call.wake', createdAt: at }
  const body = wakeAgainBody(call, at, woken)
  return told.map(({ id }) => ({ ...event, id: newDeliveryId(at), endpointId: id, body }))
}

/** A look that takes longer is no reason for a second one; the work after it may be. */
function createPolling(look: () => Promise<void>, work: () => Promise<void>) {
  let stop: Cancel = () => {}
  let isLooking = false
  async function poll(): Promise<void> {
    if (isLooking) return
    isLooking = true
    await look()
    isLooking = false
    await work()
  }
  return {
    start() {
      stop = every(pollMs, () => void poll())
    },
    stop: () => stop(),
  }
}

/** Said once, however long the store is away. */
function createOutage(onError: (error: unknown) => void) {
  let isAway = false
  return {
    failed(error: unknown) {
      const isStore = error instanceof StoreError
      if (!isStore || !isAway) onError(error)
      isAway ||= isStore
    },
    over() {
      isAway = false
    },
  }
}
