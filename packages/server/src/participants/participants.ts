/**
 * A participant as the backend of its product sees it, sends it away, and has it erased [SRV2].
 *
 *   const participants = createParticipants({ sessions, devices, seenCalls, revoked, now, … })
 *   participants.show(participant)                  → { online, sessions, devices, live_calls }
 *   participants.disconnect(participant, until?)    → the instant before which its tokens do not count
 *   participants.erase(participant)                 → { tokens_from, calls, devices, … }, once nothing names it any more;
 *                                                     undefined while that takes longer than a request
 */
import type { CallView, ParticipantErased, ParticipantView } from '@ringwire/protocol/backend'
import type { Revoked } from '../auth/revoked.ts'
import type { LiveCall, Participant } from '../call/call.ts'
import type { SeenCalls } from '../history/seen-calls.ts'
import type { AuditStore } from '../ports/audit.ts'
import type { CallStore } from '../ports/call-store.ts'
import type { Device, Devices } from '../ports/devices.ts'
import type { Groups } from '../ports/groups.ts'
import type { OnlineStore } from '../ports/online.ts'
import { longestRevocationMs } from '../ports/product-store.ts'
import type { SeenSession, Sessions } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import type { TimelineStore } from '../ports/timeline.ts'
import type { WebhookStore } from '../ports/webhooks.ts'
import { readInstant } from '../time/instant.ts'
import { type Count, createErasing, type Erased } from './erasing.ts'
import type { Erasures } from './erasures.port.ts'

export interface ParticipantsOptions {
  readonly sessions: Pick<Sessions, 'seen'>
  readonly devices: Pick<Devices, 'of' | 'forgetAll'>
  readonly seenCalls: Pick<SeenCalls, 'page'>
  readonly revoked: Pick<Revoked, 'revoke'>
  readonly calls: Pick<CallStore, 'liveCallsOf' | 'erase'>
  readonly timeline: Pick<TimelineStore, 'forgetParticipant'>
  readonly webhooks: Pick<WebhookStore, 'erase'>
  readonly online: Pick<OnlineStore, 'erase'>
  readonly groups: Pick<Groups, 'forget'>
  readonly audit: Pick<AuditStore, 'forget'>
  readonly erasures: Erasures
  /** Ends a live call of somebody, and tells both sides. A call to a group only stops ringing there [GROUP1]. */
  readonly endCall: (call: LiveCall, participant: Participant) => Promise<unknown>
  /** No live call names somebody any more as a member of its group, once its own calls have ended [GROUP1]. */
  readonly forgetMember: (participant: Participant) => Promise<unknown>
  /** Writes what this process still holds for timelines. */
  readonly flush: () => Promise<void>
  /** Other processes serve as well. */
  readonly hasOthers: () => boolean
  readonly now: () => number
  /** What the clock has jumped in all, in ms: the instants of sessions are without that. */
  readonly jumpedMs: () => number
  /** How long a request to erase somebody waits, in ms; tests wait less. */
  readonly answerMs?: number
}

/** How long it may take until the last socket is gone, in ms. */
const leaveMs = 5_000
const lookMs = 20
/** Within that others have written what they hold of somebody whose sockets are closed, in ms. */
const othersWriteMs = 1_500

export interface Participants {
  show(participant: Participant): Promise<Omit<ParticipantView, 'success'>>
  /** `until`: tokens that are issued before it do not count either; in ms since the epoch, as `readUntil` answers it. */
  disconnect(participant: Participant, until?: number): Promise<number>
  /**
   * Undefined if it goes on, and rejects if it could not be done whole: then the caller has to ask again. The answer says
   * how much was erased in all since `erasureHeard`.
   */
  erase(participant: Participant): Promise<Omit<ParticipantErased, 'success'> | undefined>
  /** Whether this process erases somebody now: a request for the same joins that. */
  isErasing(participant: Participant): boolean
  erasureHeard(participant: Participant): Promise<void>
}

/** Until when tokens are taken back, in ms since the epoch, 0 where nothing is said; or what is wrong with it [SRV2]. */
export function readUntil(text: string | undefined, now: number): number | string {
  const until = text === undefined ? 0 : readInstant(text)
  if (until === undefined)
    return 'must be an ISO 8601 instant with an existing day and Z or ±hh:mm, as 2026-03-01T09:00:00Z.'
  return until - now > longestRevocationMs
    ? 'must be no more than ten years (3,653 days) from now.'
    : Math.max(0, until)
}

export function createParticipants(options: ParticipantsOptions): Participants {
  const { sessions, devices, seenCalls, revoked, calls, timeline, webhooks, online, groups, audit } = options
  const { endCall, forgetMember, now } = options

  async function liveCallsOf({ product, role, userId }: Participant): Promise<CallView[]> {
    const page = await seenCalls.page(product, { status: 'live', role, userId, limit: '100' })
    return page.ok ? [...page.data] : []
  }

  async function endCalls(participant: Participant): Promise<void> {
    for (let live = await calls.liveCallsOf(participant); live.length > 0; live = await calls.liveCallsOf(participant))
      for (const call of live) await endCall(call, participant)
  }

  const erasing = createErasing({ erasures: options.erasures, work: eraseAll, answerMs: options.answerMs })

  async function eraseAll(participant: Participant, count: Count): Promise<number> {
    const before = now()
    await revoked.revoke(participant, before)
    await gone(options, participant)
    // A call to one of its groups that begins from here on does not ring at it, so none is missed.
    await groups.forget(participant)
    await endCalls(participant)
    await forgetMember(participant)
    await online.erase(participant)
    await count('devices', await devices.forgetAll(participant))
    // As long as the calls name it: that is how its entries are found. Sightings from here on go with the names.
    await timeline.forgetParticipant(participant, (entries) => count('timelineEntries', entries))
    await calls.erase(participant, (erased) => count('calls', erased))
    await webhooks.erase(participant, (deliveries) => count('webhookDeliveries', deliveries))
    // Last: while the rest is erased, somebody may have it disconnected, which is written down.
    await audit.forget(participant)
    return before
  }

  return {
    async show(participant) {
      const [seen, known, live_calls] = await Promise.all([
        sessions.seen(participant),
        devices.of(participant, now()),
        liveCallsOf(participant),
      ])
      return {
        online: seen.length > 0,
        sessions: seen.map((session) => viewOfSession(session, options.jumpedMs())),
        devices: known.map(viewOfDevice),
        live_calls,
      }
    },
    async disconnect(participant, until = 0) {
      const before = Math.max(now(), until)
      await revoked.revoke(participant, before)
      // A participant who may not come back is not woken either; one who may registers again [PUSH1].
      await devices.forgetAll(participant)
      return before
    },
    async erase(participant) {
      const erased = await erasing.erase(participant)
      return erased === undefined ? undefined : viewOfErased(erased)
    },
    isErasing: erasing.isUnderWay,
    erasureHeard: erasing.heard,
  }
}

/** Resolves when nobody is connected and all is written: a client that stays could do something that names the participant again. */
async function gone({ sessions, hasOthers, flush }: ParticipantsOptions, participant: Participant): Promise<void> {
  const deadline = performance.now() + leaveMs
  while ((await sessions.seen(participant)).length > 0) {
    if (performance.now() > deadline)
      throw new StoreError('unavailable', 'Not all sockets of the participant are closed.')
    await Bun.sleep(lookMs)
  }
  if (hasOthers()) await Bun.sleep(othersWriteMs)
  await flush()
}

function viewOfSession({ sessionId, deviceId, extended, openedAt, appVersion }: SeenSession, jumpedMs: number) {
  return {
    session_id: sessionId,
    device_id: deviceId ?? null,
    connected_at: new Date(openedAt + jumpedMs).toISOString(),
    extended,
    app_version: appVersion,
  }
}

function viewOfDevice({ deviceId, address: { platform }, registeredAt }: Device) {
  return { device_id: deviceId, platform, registered_at: new Date(registeredAt).toISOString() }
}

function viewOfErased({ tokensFrom, devices, timelineEntries, calls, webhookDeliveries }: Erased) {
  return {
    tokens_from: new Date(tokensFrom).toISOString(),
    devices,
    timeline_entries: timelineEntries,
    calls,
    webhook_deliveries: webhookDeliveries,
  }
}
