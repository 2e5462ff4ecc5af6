/** The story of a call in one sentence, for somebody who asks why a phone did not ring [TRACE1]. Pure. */
import type { CallView, TimelineEntry } from '@ringwire/protocol/backend'
import type { EndReasonOf } from '@ringwire/protocol/end-reasons'
import { type HoldRow, holdChanges, holdsOf } from './holds.ts'

const services: Readonly<Record<string, string>> = { fcm: 'FCM', apns: 'APNs', webpush: 'Web Push' }

/** `call`: null where an invite was refused before there was one. `entries` in their order. */
export function summaryOf(call: CallView | null, entries: readonly TimelineEntry[]): string {
  const text = call === null ? refusalOf(entries) : outcomeOf(call, entries)
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`
}

function refusalOf(entries: readonly TimelineEntry[]): string {
  const refused = entries.filter(({ what }) => what === 'refused').at(-1)
  if (refused === undefined) return 'nothing is known of it'
  const { code, limit, peer_role } = refused.detail
  const asker = refused.who === undefined ? 'somebody' : `${refused.who.role} ${refused.who.user_id}`
  const text = `no call began: the invite of ${asker} was refused`
  if (code === 'RATE_LIMITED') return `${text}, over the limit ${word(limit)}`
  if (code === 'CALL_PEER_ROLE_NOT_ALLOWED')
    return `${text}, for its token allows no calls to the role ${word(peer_role)}`
  if (code === 'CALL_GLARE') return `${text}, for the other side was just calling`
  return `${text} with ${word(code)}`
}

function outcomeOf(call: CallView, entries: readonly TimelineEntry[]): string {
  const { caller, callee } = call
  const [a, b] = [nameOf(caller, 'the caller'), nameOf(callee, 'the callee')]
  // Whom it was transferred to, and what came of that: the target alone can answer, decline or miss it.
  if (call.transferred_by !== undefined) return transferOutcome(call, entries, a, b)
  if (callee.group !== undefined && call.version > 1) return groupOutcome(call, entries, a, b)
  return plainOutcome(call, entries, a, b)
}

/** A call to a group: how many members there were, rang, were woken and declined, and who answered [GROUP1]. */
function groupOutcome(call: CallView, entries: readonly TimelineEntry[], a: string, b: string): string {
  const { members, rang, woken } = membersIn(entries)
  const size = members === undefined ? '' : ` (${count(members, 'member')})`
  const declines = entries.filter(({ what }) => what === 'declined').length
  const counts = [
    ...(rang === undefined ? [] : [`${rang === 0 ? 'none' : rang} rang`]),
    ...(woken ? [`${woken} ${woken === 1 ? 'was' : 'were'} woken`] : []),
    ...(declines > 0 ? [`${declines} declined`] : []),
  ]
  const called = [
    `${a} called the group ${call.callee.group}${size}`,
    ...(counts.length > 0 ? [counts.join(', ')] : []),
  ]
  return [...called, membersOutcome(call, entries, a, b)].join('; ')
}

type MemberCounts = Readonly<Partial<Record<'members' | 'rang' | 'woken', number>>>

/** Counts from different places are in several entries. */
function membersIn(entries: readonly TimelineEntry[]): MemberCounts {
  const details = entries.filter(({ what }) => what === 'members').map(({ detail }) => detail)
  const counts = details.flatMap((detail) => Object.entries(detail).filter(([, value]) => typeof value === 'number'))
  return Object.fromEntries(counts)
}

function membersOutcome(call: CallView, entries: readonly TimelineEntry[], a: string, b: string): string {
  const lasted = `after ${seconds(call.started_at, call.ended_at)}`
  const plain = plainOutcome(call, entries, a, b)
  if (call.accepted_at !== null)
    return call.ended_at === null
      ? plain
      : `${b} answered after ${seconds(call.started_at, call.accepted_at)}; ${plain}`
  if (call.status === 'ringing') return 'the call rings'
  if (call.status === 'missed') return `nobody answered within ${lasted.slice(6)}`
  if (call.status === 'rejected') return `nobody was left who had not declined, ${lasted.slice(6)} after the call began`
  if (call.end_reason === 'caller_lost') return `${a} was gone: ${lossOf(call, entries)}, and nobody came back`
  return call.end_reason === 'caller_cancelled' ? `${a} gave up ${lasted}, before an answer` : plain
}

const transferOf = ({ transferred_by }: CallView, a: string, b: string) =>
  `${transferred_by ? nameOf(transferred_by, 'somebody') : 'somebody'} transferred ${a} to ${b}`

function transferOutcome(call: CallView, entries: readonly TimelineEntry[], a: string, b: string): string {
  const text = transferOf(call, a, b)
  if (call.accepted_at !== null) {
    const answer = `${text}, ${answerOf(call.started_at, call.accepted_at)}`
    return call.ended_at === null ? answer : `${answer}; ${plainOutcome(call, entries, a, b)}`
  }
  if (call.end_reason === 'transfer_cancelled') return plainOutcome(call, entries, a, b)
  return `${text}; ${plainOutcome(call, entries, a, b)}`
}

/** Two answered calls became one: it was answered as it began. Nobody answers a ring within its first millisecond. */
const answerOf = (startedAt: string, acceptedAt: string) =>
  startedAt === acceptedAt ? 'after calls with both' : `who answered after ${seconds(startedAt, acceptedAt)}`

function plainOutcome(call: CallView, entries: readonly TimelineEntry[], a: string, b: string): string {
  const { status } = call
  const lasted = `after ${seconds(call.started_at, call.ended_at)}`
  switch (status) {
    case 'busy':
      return `${b} was in another call, and the product refuses a second one`
    case 'rejected':
      if (call.version === 1) return refusedByBackend(call)
      return declined(call, entries, b, lasted)
    case 'missed':
      return unanswered(call, entries, b)
    case 'cancelled':
      if (call.version === 1) return `${a} gave up before the backend had decided on the call, so it did not ring`
      return textOf(cancelledTexts, call, 'caller_cancelled')({ call, entries, a, b, lasted })
    case 'ended':
      return `${over(call, a, b)}${heldFor(call, entries, a, b)}${movedBy(call, entries, a, b)}${failedTransfers(entries)}`
    case 'ringing':
      return `the call rings; ${reach(call, entries, b)}`
    default:
      return `${goesOn(call, b)}${heldNow(call, entries, a, b)}${movedBy(call, entries, a, b)}${failedTransfers(entries)}`
  }
}

const goesOn = ({ started_at, accepted_at }: CallView, b: string) =>
  `the call goes on: ${b} answered after ${seconds(started_at, accepted_at)}`

/** It was over from its first version on: nobody in the call declined it [HOOK5]. */
function refusedByBackend({ end_reason }: CallView): string {
  const given: Readonly<Record<string, string>> = {
    refused: 'the backend refused the call',
    unavailable: 'the backend gave no valid answer in time, and the product then refuses calls',
  } satisfies Partial<Record<EndReasonOf<'rejected'>, string>>
  const reason = word(end_reason)
  return `${given[reason] ?? `the backend refused the call (${reason})`}, so it did not ring`
}

interface Told {
  readonly call: CallView
  readonly entries: readonly TimelineEntry[]
  readonly a: string
  readonly b: string
  readonly lasted: string
}

const cancelledTexts: Readonly<Record<EndReasonOf<'cancelled'>, (told: Told) => string>> = {
  caller_cancelled: ({ call, entries, a, b, lasted }) =>
    call.accepted_at === null
      ? `${a} gave up ${lasted}; ${reach(call, entries, b)}`
      : `${a} cancelled the call ${lasted}, when ${b} had just answered`,
  caller_lost: ({ call, entries, a, b }) =>
    `${a} was gone: ${lossOf(call, entries)}, and nobody came back; ${reach(call, entries, b)}`,
  transfer_cancelled: ({ call, a, b, lasted }) =>
    `${transferOf(call, a, b)}, but the first call ended after ${lasted.slice(6)}, before an answer`,
  superseded: ({ a, lasted }) => `${a} called again ${lasted}, and the new call took the place of this one`,
  ended_by_server: ({ lasted }) => `the backend ended the call ${lasted}, before it was answered`,
}

/** The text for a call's end reason; a reason that a client made up reads as `usual` does. */
function textOf<R extends string, T>(texts: Readonly<Record<R, T>>, { end_reason }: CallView, usual: R): T {
  return new Map<string | null, T>(Object.entries<T>(texts)).get(end_reason) ?? texts[usual]
}

function declined(call: CallView, entries: readonly TimelineEntry[], b: string, lasted: string): string {
  const by = entries.filter(({ what }) => what === 'rejected').at(-1)
  const others = sessions(entries, 'rung').filter((session) => session !== by?.session_id)
  const where = by?.device_id === undefined ? '' : ` on ${by.device_id}`
  const unsaid: EndReasonOf<'rejected'> = 'declined'
  const reason = call.end_reason === null || call.end_reason === unsaid ? '' : ` (${call.end_reason})`
  const text = `${b} declined${where} ${lasted}${reason}`
  if (others.length === 0) return text
  return `${text}, so it stopped ringing at ${count(others.length, 'other session')}`
}

/** Nobody answered in time, and nobody ended it. */
function unanswered(call: CallView, entries: readonly TimelineEntry[], b: string): string {
  if (wasNobodyThere(call, entries)) return absent(b)
  const within = `within ${seconds(call.started_at, call.ended_at)}`
  const wasPushed = entries.some(isWake)
  const isReached = entries.some(({ what }) => what === 'proven' || what === 'alerting')
  if (wasPushed && !isReached) return `${reach(call, entries, b)}, no client came ${within}`
  return `${reach(call, entries, b)}; nobody answered ${within}`
}

/** No session as the ring began, none that it reached later, and no device that could have been woken. */
function wasNobodyThere(call: CallView, entries: readonly TimelineEntry[]): boolean {
  const looked = entries.find(({ what }) => what === 'no_device')?.detail
  const isReached = entries.some(({ what }) => what === 'rung' || what === 'proven' || what === 'alerting')
  return looked?.connected === 0 && looked.registered === 0 && !isReached && pushesOf(call, entries) === ''
}

const absent = (b: string) => `${b} was not connected and has no registered device`

/** How far the ring came. */
function reach(call: CallView, entries: readonly TimelineEntry[], b: string): string {
  if (wasNobodyThere(call, entries)) return absent(b)
  const alerting = entries.find(({ what }) => what === 'alerting')
  if (alerting !== undefined) return `${b}'s phone${at(alerting)} rang`
  const proven = entries.filter(({ what }) => what === 'proven')
  if (proven.length > 0) {
    const first = proven[0] as TimelineEntry
    const text = `the ring reached ${b}'s client${at(first)}, which never said that it alerts`
    const isAsleep = unsureOf(entries, [first.session_id ?? '']) !== undefined
    return isAsleep ? `${text}, and left a later ping without an answer${pushesOf(call, entries)}` : text
  }
  const rung = sessions(entries, 'rung')
  const pushes = pushesOf(call, entries)
  // Entries may be missing, so something that was not seen may still have happened.
  if (rung.length === 0 && pushes === '') {
    const looked = entries.find(({ what }) => what === 'no_device')?.detail
    if (looked?.connected === 0 && typeof looked.registered === 'number')
      return `${b} was not connected, and the service cannot push to its ${count(looked.registered, 'registered device')}`
    return entries.some(({ what }) => what === 'no_device')
      ? `no ring to ${b} over a socket is known, and no device was there that could be woken`
      : `no ring to ${b} is known, neither over a socket nor as a push`
  }
  if (rung.length === 0) return `${b}'s phone was offline${pushes}`
  const lost = entries.find(({ what, session_id }) => what === 'socket_lost' && rung.includes(session_id ?? ''))
  const unsure = unsureOf(entries, rung)
  if (unsure !== undefined)
    return `the ring was sent to ${b}'s client${at(unsure)}, which did not answer the ping${pushes}`
  if (lost === undefined) return `the ring was sent to ${b}, whose client was never proven to have received it${pushes}`
  return `${b}'s socket was dead, and found so ${seconds(call.started_at, lost.at)} later (${word(lost.detail.cause)})${pushes}`
}

const unsureOf = (entries: readonly TimelineEntry[], of: readonly string[]) =>
  entries.find(({ what, session_id }) => what === 'unsure' && of.includes(session_id ?? ''))

const isWake = ({ what, detail }: TimelineEntry) => what === 'push' && detail.type === 'call.wake'

/** The push that came furthest. */
function pushesOf(call: CallView, entries: readonly TimelineEntry[]): string {
  const pushes = entries.filter(isWake)
  const best = pushes.find(({ detail }) => detail.result === 'accepted') ?? pushes.at(-1)
  if (best === undefined) return ''
  const { platform, result, reason, after_ms } = best.detail
  const by = services[String(platform)] ?? word(platform)
  const after = typeof after_ms === 'number' ? tenths(after_ms) : seconds(call.started_at, best.at)
  if (result === 'accepted') return `; push accepted by ${by} after ${after}`
  const why = reason === undefined ? '' : ` (${word(reason)})`
  if (result === 'gone') return `; ${by} has given its device up${why}`
  if (result === 'expired') return `; no push came through to ${by} in time${why}`
  if (result === 'failed') return `; no push came through to ${by}, which could not be asked${why}`
  if (result === 'limited') return `; ${by} took no push for now${why}`
  if (result === 'dropped') return `; no push was sent, for too many waited for ${by}`
  return `; push refused by ${by}${why}`
}

function lossOf(call: CallView, entries: readonly TimelineEntry[]): string {
  const { user_id, role } = call.caller
  const lost = entries
    .filter(({ what, who }) => what === 'socket_lost' && who?.user_id === user_id && who.role === role)
    .at(-1)
  return lost === undefined ? 'its socket was lost' : `its socket was lost (${word(lost.detail.cause)})`
}

function over(call: CallView, a: string, b: string): string {
  const talked = `after ${seconds(call.accepted_at ?? call.started_at, call.ended_at)}`
  const media = call.connected_at === null ? '; no media was reported' : ''
  const by = call.by?.user_id === call.caller.user_id && call.by.role === call.caller.role ? a : b
  const texts: Readonly<Record<EndReasonOf<'ended'>, string>> = {
    hangup: `${call.by === null ? 'the call ended' : `${by} hung up`} ${talked}`,
    peer_lost: `one side lost its connection and did not come back, so the call ended ${talked}`,
    max_duration: `the call reached the longest time that calls may take, ${talked.slice(6)}`,
    ended_by_server: `the backend ended the call ${talked}`,
    transferred: `${by} transferred the call ${talked}`,
    superseded: `a new call between the two took its place ${talked}`,
  }
  return `${textOf(texts, call, 'hangup')}${media}`
}

/** The holds of a call, by side [HOLD1]. */
function holdRows({ caller, callee }: CallView, entries: readonly TimelineEntry[]): HoldRow[] {
  return entries.flatMap(({ at, what, who }) => {
    if (what !== 'held' && what !== 'resumed') return []
    const isOf = (party: CallView['callee']) => who?.user_id === party.user_id && who.role === party.role
    const side = isOf(caller) ? 'caller' : isOf(callee) ? 'callee' : undefined
    return side === undefined ? [] : { at: Date.parse(at), what, side }
  })
}

function heldFor(call: CallView, entries: readonly TimelineEntry[], a: string, b: string): string {
  const [from, to] = [call.accepted_at ?? call.started_at, call.ended_at ?? call.started_at]
  const held = holdsOf(holdRows(call, entries), { acceptedAt: Date.parse(from), until: Date.parse(to) })
  const sides = [
    [a, held.caller_ms],
    [b, held.callee_ms],
  ] as const
  const texts = sides.filter(([, ms]) => ms > 0).map(([who, ms]) => `${who} had it on hold for ${tenths(ms)}`)
  return texts.length === 0 ? '' : `; ${texts.join(', ')}`
}

function heldNow(call: CallView, entries: readonly TimelineEntry[], a: string, b: string): string {
  const changes = holdChanges(holdRows(call, entries))
  const isHeld = (of: HoldRow['side']) => changes.filter(({ side }) => side === of).at(-1)?.what === 'held'
  const who = [...(isHeld('caller') ? [a] : []), ...(isHeld('callee') ? [b] : [])]
  if (who.length === 0) return ''
  return who.length === 1 ? `; ${who[0]} has it on hold` : `; ${who.join(' and ')} have it on hold`
}

/** Who went on with the call at another device, and when for the last time [TAKE1]. */
function movedBy(call: CallView, entries: readonly TimelineEntry[], a: string, b: string): string {
  const taken = entries.findLast(({ detail: { places } }) => Array.isArray(places) && places.some((each) => each.taken))
  if (taken === undefined) return ''
  const isCaller = taken.who?.user_id === call.caller.user_id && taken.who.role === call.caller.role
  const after = seconds(call.accepted_at ?? call.started_at, taken.at)
  return `; ${isCaller ? a : b} went on at another device${at(taken)} after ${after}`
}

const failures: Readonly<Record<string, string>> = {
  rejected: 'was declined',
  busy: 'met somebody who was in another call',
  missed: 'was not answered',
  cancelled: 'was given up',
}

/** What became of transfers after which the call went on [XFER1]. */
function failedTransfers(entries: readonly TimelineEntry[]): string {
  const failed = entries.filter(({ what }) => what === 'transfer_failed')
  return failed.map(({ detail: { status } }) => `; a transfer ${failures[word(status)] ?? 'failed'}`).join('')
}

function sessions(entries: readonly TimelineEntry[], what: string): string[] {
  return [...new Set(entries.flatMap((entry) => (entry.what === what && entry.session_id ? [entry.session_id] : [])))]
}

function nameOf({ display_name, user_id, role, group }: CallView['callee'], unknown: string): string {
  if (display_name) return display_name
  if (user_id === null && group !== undefined) return `the group ${group}`
  return user_id === '' || user_id === null ? unknown : `${role} ${user_id}`
}

const at = ({ device_id }: TimelineEntry) => (device_id === undefined ? '' : ` (${device_id})`)
const word = (value: unknown) => (value === undefined || value === null ? 'unknown' : String(value))
const count = (n: number, what: string) => `${n} ${what}${n === 1 ? '' : 's'}`
const tenths = (ms: number) => `${Math.max(0, Math.round(ms / 100) / 10)} s`

function seconds(from: string, to: string | null): string {
  return to === null ? 'some time' : tenths(Date.parse(to) - Date.parse(from))
}
