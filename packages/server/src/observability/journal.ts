/** Hears what happens to sockets, calls, requests and stores: says it in the log [LOG2], and has it counted [MET1]. */
import type { ErrorBody } from '@ringwire/protocol/errors'
import { routeAt } from '@ringwire/protocol/routes'
import { type Call, isLive, type Participant } from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import type { Asked as InviteAsked } from '../invite-hook/invite-hook.ts'
import { StoreError } from '../ports/store-error.ts'
import type { FailedDelivery } from '../ports/webhooks.ts'
import { type BoundedLog, createBoundedLog } from './bounded.ts'
import type { LogFields, Logger } from './logger.ts'
import { isFull, type Meter } from './metrics.ts'

interface Who {
  readonly participant: Participant
  readonly sessionId: string
}

interface Asked {
  readonly event: string
  readonly data: object
}

export interface Journal {
  /** The service closes a socket. */
  closing(who: Who, closeCode: number, cause: string, seconds: number): void
  /** A socket is closed before it was anybody's. */
  turnedAway(closeCode: number, cause: string, client: () => string | undefined): void
  /** A newcomer is refused because file descriptors run out. */
  full(): void
  /** A node with so many sockets begins to send clients to others, or stops because that has not helped [BAL1]. */
  rebalancing(what: 'begins' | 'rests', sockets: number): void
  /** A client closed its socket, or the network did. */
  left(closeCode: number): void
  /** A client came back to go on as a session. */
  resumed(isRecovered: boolean): void
  /** Called with every step of a call that this process has committed. */
  committed(step: Step): void
  /** A `webrtc.*` message was passed on. */
  readonly relayed: Meter['relayed']
  /** A message of a client was answered: a request, where it was one, with an error where it was refused. */
  request(who: Who, asked: Asked | undefined, error: Pick<ErrorBody, 'code' | 'limit'> | undefined): void
  /** A REST request, or an upgrade that was refused, was answered. */
  answered(asked: AskedByHttp, response: Response, durationMs: number): void
  /** A request of an operator was answered: it is no traffic of the service. */
  operator(asked: AskedByHttp, response: Response, durationMs: number): void
  /** What became of a push; `reason` is the push service's word for it [PUSH2]. */
  pushed(platform: string, result: string, reason: string): void
  /** This number of timeline entries was not written. */
  unwritten(count: number): void
  /** The backend of a product was asked about an invite. */
  inviteAsked(asked: InviteAsked): void
  /** A webhook will not be delivered any more. */
  webhookFailed(failed: FailedDelivery): void
  /** Something that a store refused, or that is a bug. */
  failed(error: unknown, message: string, fields?: LogFields): void
  /** The store is asked how it is: tells when that changes. */
  watched(store: string, check: () => Promise<void>): () => Promise<void>
}

export interface JournalOptions {
  readonly logger: Logger
  /** Whether requests are told one by one. */
  readonly isDebug: boolean
  /** Monotonic, ms. */
  readonly now: () => number
  readonly meter: Meter
}

export function createJournal({ logger, isDebug, now, meter }: JournalOptions): Journal {
  const bounded = createBoundedLog({ logger, now, later: (work, ms) => void setTimeout(work, ms).unref() })

  function tellAnswer({ method, path, client }: AskedByHttp, response: Response, durationMs: number): void {
    const { status } = response
    const isRefused = status === 401 || status === 403 || status === 429
    if (!isDebug && !isRefused) return
    const fields = () => ({ method, path, status, address: client(), durationMs: tenths(durationMs) })
    if (isDebug) logger.debug(fields(), 'request')
    if (isRefused) void tellRefusal(bounded, fields, response)
  }

  return {
    closing(who, closeCode, cause, seconds) {
      meter.closed(closeCode, cause)
      logger.info({ ...of(who), closeCode, cause, seconds: tenths(seconds) }, 'socket closed')
    },
    turnedAway(closeCode, cause, client) {
      meter.closed(closeCode, cause)
      bounded.write('info', () => ({ closeCode, cause, address: client() }), 'socket refused')
    },
    full: () => meter.limited('descriptors'),
    rebalancing(what, sockets) {
      if (what === 'begins') logger.info({ sockets }, 'idle clients are sent to nodes with fewer sockets')
      else
        logger.warn(
          { sockets },
          'clients that were sent away did not reach nodes with fewer sockets: trying again later',
        )
    },
    left: (closeCode) => meter.closed(closeCode, 'client'),
    resumed: meter.resumed,
    committed(step) {
      meter.committed(step)
      if (!isLive(step.call)) logger.info(endOf(step.call), 'call ended')
    },
    relayed: meter.relayed,
    request(who, asked, error) {
      meter.requested(asked?.event, error?.code ?? 'ok')
      if (isDebug) logger.debug({ ...of(who), ...requestOf(asked), code: error?.code ?? 'ok' }, 'request')
      if (error?.code !== 'RATE_LIMITED') return
      if (error.limit !== undefined) meter.limited(error.limit)
      bounded.write('warn', { ...of(who), event: asked?.event, code: error.code, limit: error.limit }, 'over a limit')
    },
    answered(asked, response, durationMs) {
      const path = namelessPath(asked.path)
      meter.answered(path, response.status)
      tellAnswer({ ...asked, path: pathOf(path) }, response, durationMs)
    },
    operator(asked, response, durationMs) {
      meter.operator(response.status)
      tellAnswer({ ...asked, path: operatorPath(asked.path) }, response, durationMs)
    },
    ...outgoing(meter, bounded),
    failed(error, message, given = {}) {
      const fields = given.path === undefined ? given : { ...given, path: pathOf(namelessPath(given.path)) }
      if (!(error instanceof StoreError)) logger.error({ ...fields, error }, message)
      else bounded.write('warn', { ...fields, error }, isFull(error) ? 'a store is full' : message)
    },
    watched: createWatched(logger, now),
  }
}

/** What became of what went to others: pushes, webhooks and questions to backends. */
function outgoing(
  meter: Meter,
  bounded: BoundedLog,
): Pick<Journal, 'pushed' | 'unwritten' | 'inviteAsked' | 'webhookFailed'> {
  return {
    pushed(platform, result, reason) {
      meter.pushed(platform, result)
      if (result === 'accepted' || result === 'gone' || result === 'expired') return
      bounded.write('warn', { event: platform, cause: result, reason }, 'a push did not get through')
    },
    unwritten(count) {
      bounded.write('warn', { count }, 'entries of timelines were dropped')
    },
    inviteAsked({ question: { product, callUuid }, result, problem }) {
      meter.inviteAsked(result)
      if (result !== 'failed') return
      bounded.write('warn', { product, callUuid, cause: problem }, 'the backend gave no valid answer about an invite')
    },
    webhookFailed({ delivery, endpoint, cause }) {
      const { id, type, subject, attempts } = delivery
      const fields = { product: endpoint.product, endpoint: endpoint.id, delivery: id, event: type, cause }
      const about = subject === id ? {} : { callUuid: subject }
      bounded.write('warn', { ...fields, ...about, attempt: attempts + 1 }, 'a webhook could not be delivered')
    },
  }
}

/** A store that has not said how it is for this time is lost, in ms. */
const answerMs = 1_000

/** Tells when a store is lost, and when it is back. */
function createWatched(logger: Logger, now: () => number): Journal['watched'] {
  return (store, check) => {
    let lostAt: number | undefined
    return async () => {
      try {
        await within(check(), answerMs)
      } catch (error) {
        if (lostAt === undefined) logger.warn({ store, error }, 'store lost')
        lostAt ??= now()
        throw error
      }
      if (lostAt !== undefined) logger.warn({ store, durationMs: Math.round(now() - lostAt) }, 'store back')
      lostAt = undefined
    }
  }
}

/** A later answer is about a moment that is over. */
async function within(answer: Promise<void>, ms: number): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new StoreError('unavailable', 'it does not answer')), ms)
  try {
    await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}

const tenths = (value: number) => Math.round(value * 10) / 10

function of({ participant, sessionId }: Who): LogFields {
  return { participant, sessionId }
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

function requestOf(asked: Asked | undefined): LogFields {
  if (asked === undefined) return {}
  const { event, data } = asked
  const callUuid = 'call_uuid' in data ? String(data.call_uuid) : ''
  return uuid.test(callUuid) ? { event, callUuid } : { event }
}

/** Paths of the service look like this; what a stranger makes up may hold a token [LOG1]. */
function pathOf(path: string): string {
  return /^\/[a-z0-9/_{}-]{0,64}$/.test(path) ? path : '(unknown)'
}

/** As the registry writes it: what stands for a name in it may be a participant [LOG2]. */
function namelessPath(path: string): string {
  return routeAt(path)?.route.path ?? (path.startsWith('/v1/server/') ? '(unknown)' : path)
}

const ofProducts = /^\/admin\/api\/products\/[^/]*\/(.*)$/
const ofKeys = /^\/admin\/api\/keys\/[^/]*\/(disable|enable|rotate)$/

/** As a path of an operator is logged. Below a product there are the paths of backends, with the same names in them [ADM2, LOG2]. */
function operatorPath(path: string): string {
  const below = ofProducts.exec(path)?.[1]
  if (below !== undefined) {
    const known = below === 'search' ? '/v1/server/search' : namelessPath(`/v1/server/${below}`)
    return known.replace('/v1/server/', '/admin/api/products/{product}/')
  }
  const change = ofKeys.exec(path)?.[1]
  return change === undefined ? pathOf(path) : `/admin/api/keys/{key_id}/${change}`
}

/** `path` has no query; the log looks up the participant when it writes the line. */
interface AskedByHttp {
  readonly method: string
  readonly path: string
  readonly client: () => string | undefined
}

/** Its code is in its body; the path has no query. */
async function tellRefusal(bounded: BoundedLog, fields: () => LogFields, response: Response): Promise<void> {
  const message = response.status === 429 ? 'over a limit' : 'authentication failed'
  // A body that would not be written is not read.
  const body: unknown = bounded.hasRoom(message)
    ? await response
        .clone()
        .json()
        .catch(() => undefined)
    : undefined
  const code = (body as { error?: { code?: string } } | undefined)?.error?.code
  bounded.write('warn', () => ({ ...fields(), code }), message)
}

/** From the invite to the answer, from there to the first media, and from the answer to the end. */
function endOf(call: Exclude<Call, { status: 'ringing' | 'accepted' | 'connected' }>): LogFields {
  const { callUuid, product, status, endReason, startedAt, acceptedAt, connectedAt, endedAt, caller, callee } = call
  return {
    callUuid,
    product,
    caller: { product, ...caller },
    callee: { product, ...callee },
    status,
    endReason,
    ringMs: (acceptedAt ?? endedAt) - startedAt,
    connectMs: acceptedAt === null || connectedAt === null ? undefined : connectedAt - acceptedAt,
    talkMs: acceptedAt === null ? undefined : endedAt - acceptedAt,
  }
}
