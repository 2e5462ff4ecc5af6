/** A call's timeline as the backend of its product sees it [TRACE1]: its events, and the sightings between them. */
import type { TimelineEntry } from '@ringwire/protocol/backend'
import { type Call, isLive, nextOf, otherSide, type Side } from './call.ts'
import type { CallEvent, Step } from './effects.ts'
import { withoutRepeats } from './holds.ts'
import { mostEntries, type TimelineRow } from './observed.ts'
import { type SideReports, shown } from './quality.ts'

/** The entries that change the state of a call; they are always shown. */
const turns: readonly string[] = [
  'invited',
  'busy',
  'accepted',
  'connected',
  'rejected',
  'cancelled',
  'ended',
  'missed',
]

type Dated = TimelineEntry & { readonly time: number }

const iso = (at: number) => new Date(at).toISOString()

/** In order; of what happened in the same millisecond, events come first. */
export function timelineOf(
  call: Call | undefined,
  steps: readonly Step[],
  rows: readonly TimelineRow[],
): TimelineEntry[] {
  const devices = new Map(
    rows.flatMap(({ sessionId, deviceId }) => (sessionId && deviceId ? [[sessionId, deviceId]] : [])),
  )
  const { sides, told } = lossesOf(steps)
  const transfers = transfersOf(steps, call)
  // A round that is over tells nobody anything; there may be one each second.
  const shown = steps.filter((step) => !told.has(step) && step.event.type !== 'round_over')
  const entries: Dated[] = [
    ...shown.map((step) =>
      ofStep(step, isLastOf(steps, step) ? call : undefined, sides.get(step), transfers.get(step)),
    ),
    ...withoutRepeats(rows).map((row) => ofRow(row, call)),
  ]
  entries.sort((a, b) => a.time - b.time)
  return bounded(entries).map(({ time: _, ...entry }) => withDevice(entry, devices))
}

/** Places that come and go can be many; what became of the call is never left out. */
function bounded(entries: readonly Dated[]): readonly Dated[] {
  let room = mostEntries - entries.filter(({ what }) => turns.includes(what)).length
  return entries.length <= mostEntries ? entries : entries.filter(({ what }) => turns.includes(what) || room-- > 0)
}

function withDevice(entry: TimelineEntry, devices: ReadonlyMap<string, string>): TimelineEntry {
  const device = entry.device_id ?? devices.get(entry.session_id ?? '')
  return device === undefined ? entry : { ...entry, device_id: device }
}

const isLastOf = (steps: readonly Step[], step: Step) => step === steps.at(-1)

/** `call`: as it is after its last step. */
function ofStep(
  { call: { version, ...call }, event }: Step,
  after: Call | undefined,
  side: Side | undefined,
  transfer: object | undefined,
): Dated {
  const { type, at, by, moved, note } = event
  const member = memberIn(event)
  const over = after !== undefined && !isLive(after) ? { status: after.status, end_reason: after.endReason } : {}
  return {
    time: at,
    at: iso(at),
    what: type,
    ...(by !== null && { who: { user_id: by.userId, role: by.role } }),
    ...(member !== undefined && { who: { user_id: member, role: call.callee.role } }),
    ...(by !== null && by.sessionId !== '' && { session_id: by.sessionId }),
    ...(side !== undefined && { who: whoOf(call, side) }),
    detail: {
      version,
      ...over,
      ...transfer,
      ...(moved !== undefined &&
        moved.length > 0 && {
          places: moved.map(({ side, from, taken }) => ({ side, from, ...(taken && { taken }) })),
        }),
      ...(note !== undefined && { note }),
    },
  }
}

/**
 * What the entries of transfers say: the id of the new call, and how that call ended if nobody answered it [XFER1]. A step is read
 * with the call as it is now. So if a transfer failed, only the step of its failure has the id of its new call.
 */
function transfersOf(steps: readonly Step[], call: Call | undefined): ReadonlyMap<Step, object> {
  const transfers = new Map<Step, object>()
  let begun: Step | undefined
  for (const step of steps) {
    if (step.event.type === 'transferring') begun = step
    const failed = step.event.notices.find(({ event }) => event === 'call.transfer_failed')
    if (failed?.event !== 'call.transfer_failed') continue
    const { new_call_uuid, status, end_reason } = failed.data
    transfers.set(step, { new_call_uuid, status, end_reason })
    if (begun !== undefined) transfers.set(begun, { new_call_uuid })
    begun = undefined
  }
  const next = call && nextOf(call)?.callUuid
  if (next === undefined) return transfers
  if (begun !== undefined) transfers.set(begun, { new_call_uuid: next })
  const last = steps.at(-1)
  if (last?.event.type === 'ended') transfers.set(last, { new_call_uuid: next })
  return transfers
}

/** Whose turn began or ended, of a group that rings in turn [GROUP1]. */
function memberIn({ type, notices }: CallEvent): string | undefined {
  if (type !== 'turn' && type !== 'passed') return undefined
  return notices.flatMap(({ to }) => ('member' in to ? to.member : undefined) ?? [])[0]
}

/**
 * Whose place was lost with which step: the other side heard of it. If the service told the client to come back, the other side
 * hears of it with a later step [PEER1]. `told`: the steps that say nothing else. Their loss is an entry already.
 */
function lossesOf(steps: readonly Step[]) {
  const sides = new Map<Step, Side>()
  const told = new Set<Step>()
  const losses = steps.filter(({ event }) => event.type === 'place_lost')
  const unheard = Map.groupBy(
    losses.filter(({ event }) => awaysOf(event).length === 0),
    ({ event }) => iso(event.at),
  )
  for (const step of losses) {
    const aways = awaysOf(step.event)
    const firsts = aways.flatMap(({ to, data: { since } }) => {
      const first = since === iso(step.event.at) ? undefined : unheard.get(since)?.shift()
      if (first !== undefined) sides.set(first, otherSide(to))
      return first ?? []
    })
    const [only, ...more] = aways
    if (only !== undefined && firsts.length === aways.length) told.add(step)
    else if (only !== undefined && more.length === 0) sides.set(step, otherSide(only.to))
  }
  return { sides, told }
}

function awaysOf({ peers = [] }: CallEvent) {
  return peers.filter((news) => news.event === 'call.peer_away')
}

function whoOf(call: Pick<Call, Side>, side: Side) {
  return { user_id: call[side].userId, role: call[side].role }
}

function ofRow({ at, what, side, asker, sessionId, deviceId, detail }: TimelineRow, call: Call | undefined): Dated {
  const who = asker ? { user_id: asker.userId, role: asker.role } : side && call ? whoOf(call, side) : undefined
  return {
    time: at,
    at: iso(at),
    what,
    ...(who !== undefined && { who }),
    ...(deviceId !== undefined && { device_id: deviceId }),
    ...(sessionId !== undefined && { session_id: sessionId }),
    detail: what === 'quality' ? shown(detail as unknown as SideReports) : { ...detail },
  }
}
