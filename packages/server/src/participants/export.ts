/**
 * Everything that is kept of a participant, as JSON in pieces [SRV2]: a page of its calls is in memory at once, however many
 * there are, and sockets have their turn after each call.
 *
 *   const exportOf = createParticipantExport({ participants, revoked, calls, timeline, timelines, now })
 *   for await (const text of exportOf(participant)) …
 */
import type { ParticipantExport, TimelineEntry } from '@ringwire/protocol/backend'
import type { Revoked } from '../auth/revoked.ts'
import type { Participant } from '../call/call.ts'
import { callView } from '../call/view.ts'
import { shownRefusals } from '../history/refused-invites.ts'
import { type AuditStore, timeOfAudit } from '../ports/audit.ts'
import type { CallStore, Position } from '../ports/call-store.ts'
import type { Groups } from '../ports/groups.ts'
import { macrotask } from '../ports/macrotask.ts'
import type { RefusedAt, TimelineStore } from '../ports/timeline.ts'
import type { Timelines } from '../timeline/timelines.ts'
import type { Participants } from './participants.ts'

export interface ParticipantExportOptions {
  readonly participants: Pick<Participants, 'show'>
  readonly revoked: Pick<Revoked, 'tokensFrom'>
  readonly calls: Pick<CallStore, 'list'>
  readonly groups: Pick<Groups, 'of'>
  readonly audit: Pick<AuditStore, 'about'>
  readonly timeline: Pick<TimelineStore, 'refusedOf'>
  readonly timelines: Pick<Timelines, 'of'>
  readonly now: () => number
}

export type ExportOf = (participant: Participant) => AsyncIterableIterator<string>

type Head = Omit<ParticipantExport, 'calls' | 'refused' | 'changes'>

const pageSize = 100

export function createParticipantExport(options: ParticipantExportOptions): ExportOf {
  const { participants, revoked, calls, groups, audit, timeline, timelines, now } = options

  async function headOf(participant: Participant): Promise<Head> {
    const { role, userId } = participant
    const { sessions, devices } = await participants.show(participant)
    const tokensFrom = revoked.tokensFrom(participant)
    return {
      success: true,
      user_id: userId,
      role,
      exported_at: new Date(now()).toISOString(),
      tokens_from: tokensFrom === undefined ? null : new Date(tokensFrom).toISOString(),
      sessions,
      devices,
      groups: [...(await groups.of(participant))],
    }
  }

  /**
   * Entries of the other side do not belong to the participant. Refused invites are a list of their own, whatever they
   * named.
   */
  async function entriesOf({ product, role, userId }: Participant, callUuid: string): Promise<TimelineEntry[]> {
    const entries = (await timelines.of(product, callUuid))?.entries ?? []
    return entries.filter(({ what, who }) => what !== 'refused' && who?.user_id === userId && who.role === role)
  }

  async function* callsOf(participant: Participant): AsyncGenerator<ParticipantExport['calls'][number]> {
    const { product } = participant
    for (let after: Position | undefined, isLast = false; !isLast; isLast = after === undefined) {
      const page = await calls.list({ product, participant, statuses: undefined, since: 0, limit: pageSize, after })
      for (const { call, by } of page.calls) {
        yield { call: callView(call, by), entries: await entriesOf(participant, call.callUuid) }
        await macrotask()
      }
      after = page.next
    }
  }

  async function* refusedOf(participant: Participant): AsyncGenerator<ParticipantExport['refused'][number]> {
    for (let before: RefusedAt | undefined, isLast = false; !isLast; ) {
      const page = await timeline.refusedOf(participant, pageSize, before)
      for (const row of page) yield* shownRefusals(row)
      before = page.at(-1)
      isLast = page.length < pageSize
      await macrotask()
    }
  }

  /** The authors of the changes do not belong to the participant. */
  async function* changesOf(participant: Participant): AsyncGenerator<ParticipantExport['changes'][number]> {
    for (let before: string | undefined, isLast = false; !isLast; ) {
      const page = await audit.about(participant, { before, limit: pageSize })
      for (const entry of page)
        yield { at: new Date(timeOfAudit(entry)).toISOString(), action: entry.action, by: entry.actor.kind }
      before = page.at(-1)?.id
      isLast = page.length < pageSize
      await macrotask()
    }
  }

  return async function* exportOf(participant) {
    yield JSON.stringify(await headOf(participant)).slice(0, -1)
    yield* listOf('calls', callsOf(participant))
    yield* listOf('refused', refusedOf(participant))
    yield* listOf('changes', changesOf(participant))
    yield '}\n'
  }
}

async function* listOf(name: string, items: AsyncIterable<unknown>): AsyncGenerator<string> {
  yield `,"${name}":[`
  let separator = ''
  for await (const item of items) {
    yield separator + JSON.stringify(item)
    separator = ','
  }
  yield ']'
}
