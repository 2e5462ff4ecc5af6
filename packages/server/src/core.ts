import { createAudit } from './audit/audit.ts'
import { loadJwtSecrets } from './auth/jwt-secrets.ts'
import { createRingTickets } from './auth/ring-ticket.ts'
import { type Backend, finalsMs } from './backend.ts'
import { type CallRef, callKey } from './call/call.ts'
import { createDomain, type Domain } from './calls/domain.ts'
import type { Config } from './config/config.ts'
import { createInviteHook } from './invite-hook/invite-hook.ts'
import { createLimits } from './limits/limits.ts'
import type { Journal } from './observability/journal.ts'
import type { Meter } from './observability/metrics.ts'
import { createAddressGuard } from './outgoing/addresses.ts'
import { createPost } from './outgoing/post.ts'
import { createPolicies } from './products/policies.ts'
import { openSender } from './push/open.ts'
import { createWaking } from './push/waking.ts'
import { createSystemTimers } from './time/timers.ts'
import { createObservers } from './timeline/observers.ts'
import { createRecorder } from './timeline/recorder.ts'
import type { Traces } from './traces/traces.ts'
import { createWebhookEndpoints } from './webhooks/endpoints.ts'
import { createWakeHook } from './webhooks/wake-hook.ts'
import { createWebhooks } from './webhooks/webhooks.ts'

export interface CoreDeps {
  readonly config: Config
  readonly backend: Backend
  readonly journal: Journal
  readonly meter: Meter
  /** Undefined where calls are not traced. */
  readonly traces: Traces | undefined
  /** Called when a product key is disabled that was not before [KEY1]. */
  readonly onDisabled: () => void
}

export type Core = ReturnType<typeof createCore>

const dayMs = 86_400_000
/** The longest answer of a backend about an invite, in bytes: its metadata has 1 KiB [HOOK5]. */
const decisionBytes = 16 * 1024

/** The parts that look after calls, and report them: nobody reaches them from outside. */
export function createCore(deps: CoreDeps) {
  const { config, backend, journal, traces, onDisabled } = deps
  const { stores, clock } = backend
  const limits = createLimits(config, backend.counters)
  const secrets = loadJwtSecrets(config)
  const ringTickets = createRingTickets({ secrets, now: clock.now })
  const recorder = createRecorder({
    store: stores.timeline,
    now: clock.now,
    retentionMs: config.retentionDays === null ? null : config.retentionDays * dayMs,
    onDropped: journal.unwritten,
    onFirstRelay: traces?.relayed,
    onError: (error) => journal.failed(error, 'timelines could not be written'),
  })
  const known = (ref: CallRef) => domain.delivery.known.get(callKey(ref))
  const { sender, waking, webhooks, endpoints, inviteHook, guard } = createTellers({
    ...deps,
    ringTickets,
    recorder,
    known,
  })
  const policies = createPolicies({
    products: stores.products,
    onDisabled,
    onError: (error) => journal.failed(error, 'settings of products could not be read'),
  })
  const domain: Domain = createDomain({
    config,
    backend,
    limits,
    isRelayOnly: policies.isRelayOnly,
    mayTake: policies.mayTake,
    inviteHook,
    finalsMs,
    onCommitted(step) {
      journal.committed(step)
      waking.committed(step)
      webhooks.committed(step)
      traces?.committed(step)
    },
    onTold: (step) => traces?.told(step),
    onLeft: waking.committed,
    onDoubt: waking.doubt,
    onNodeDied: waking.nodeDied,
    onQuiet: waking.isQuiet,
    onRingsOn: waking.ringsOn,
    onRangNowhere: waking.rangNowhere,
    onPassed: journal.relayed,
    recorder,
    hearsEnds: webhooks.hearsEnds,
    onError: (error) => journal.failed(error, 'a call could not be looked after'),
    timers: createSystemTimers(),
    newUuid: () => crypto.randomUUID(),
  })
  traces?.start(known)
  const audit = createAudit({
    store: stores.audit,
    now: clock.now,
    retentionMs: config.retentionDays === null ? null : config.retentionDays * dayMs,
    onError: (error, change) => journal.failed(error, 'the audit log could not be written', { event: change?.action }),
  })
  return { audit, limits, secrets, ringTickets, recorder, sender, waking, webhooks, endpoints, guard, policies, domain }
}

interface TellersDeps extends Omit<CoreDeps, 'onDisabled'> {
  readonly ringTickets: ReturnType<typeof createRingTickets>
  readonly recorder: ReturnType<typeof createRecorder>
  readonly known: Parameters<typeof createWaking>[0]['known']
}

/** What tells of calls outside of sessions: pushes to devices, webhooks to backends. */
function createTellers({ config, backend, journal, meter, traces, ringTickets, recorder, known }: TellersDeps) {
  const { stores, clock, sessions, wakes } = backend
  const onError = (error: unknown) => journal.failed(error, 'a device could not be woken')
  const observers = createObservers(recorder)
  const sender = openSender({
    config,
    devices: stores.devices,
    now: clock.now,
    onSent(platform, result, reason, sent) {
      journal.pushed(platform, result, reason)
      observers.pushed(result, reason, sent)
      traces?.pushed(result, sent)
    },
    onRepeated: (platform) => meter.pushed(platform, 'repeated'),
    onError,
  })
  const waker = { devices: stores.devices, sessions, sender, tickets: ringTickets, now: clock.now }
  const waking = createWaking({
    ...waker,
    wakes,
    known,
    load: (ref) => stores.calls.load(ref),
    hearsWakes: (product) => webhooks.hearsWakes(product),
    onNoDevice(call, found) {
      observers.noDevice(call, found)
      traces?.noDevice(call, found)
    },
    onMembers: observers.members,
    onWokenAgain: (call, woken) => webhooks.wokenAgain(call, woken),
    onError,
  })
  const guard = createAddressGuard(config.webhookAllow)
  const webhooks = createWebhooks({
    store: stores.webhooks,
    post: createPost({ guard }),
    postHere: createPost({ guard: createAddressGuard(['127.0.0.1']) }),
    wakeHook: createWakeHook(waker),
    now: clock.now,
    traceparent: traces?.traceparent,
    onResult(result, attempt) {
      meter.hooked(result)
      observers.hooked(result, attempt)
      traces?.hooked(result, attempt)
    },
    onFailed: journal.webhookFailed,
    onError: (error) => journal.failed(error, 'webhooks could not be looked after'),
  })
  const inviteHook = createInviteHook({
    post: createPost({ guard, shownBytes: decisionBytes }),
    now: clock.now,
    timers: createSystemTimers(),
    traceparent: traces?.traceparent,
    onAsked(asked) {
      journal.inviteAsked(asked)
      observers.inviteAsked(asked)
      traces?.inviteAsked(asked)
    },
  })
  const endpoints = createWebhookEndpoints({
    store: stores.webhooks,
    guard,
    now: clock.now,
    onChanged: webhooks.changed,
  })
  return { sender, waking, webhooks, endpoints, inviteHook, guard }
}
