import type { CallRow, EventRow, Recording } from '../recording.ts'
import type { Report } from './findings.ts'

/** One call as PostgreSQL has it. */
export interface CallFacts {
  readonly row: CallRow
  readonly events: readonly EventRow[]
  /** When it came to each status, in ms since the epoch. */
  readonly reached: ReadonlyMap<string, number>
  readonly isOver: boolean
}

export type Facts = ReadonlyMap<string, CallFacts>

export const overStatuses: readonly string[] = ['ended', 'rejected', 'cancelled', 'missed', 'busy']

/** The status that an event of `call_events` leads to; undefined: it changes none. */
export function statusAfter({ type }: EventRow): string | undefined {
  if (type === 'invited') return 'ringing'
  return type === 'accepted' || type === 'connected' || overStatuses.includes(type) ? type : undefined
}

export function factsOf({ calls, events }: Pick<Recording, 'calls' | 'events'>): Facts {
  const eventsOf = Map.groupBy(events, ({ call_uuid }) => call_uuid)
  return new Map(
    calls.map((row) => {
      const own = eventsOf.get(row.call_uuid) ?? []
      const reached = new Map<string, number>()
      for (const event of own) {
        const status = statusAfter(event)
        if (status !== undefined && !reached.has(status)) reached.set(status, event.at)
      }
      return [row.call_uuid, { row, events: own, reached, isOver: overStatuses.includes(row.status) }]
    }),
  )
}

/** The status of a call as of one of its versions. */
export function statusAt({ events }: CallFacts, version: number): string | undefined {
  return events
    .filter((event) => event.version <= version)
    .map(statusAfter)
    .findLast((status) => status !== undefined)
}

/** The side of a user, if it is one of the two. */
export function sideOf({ row }: CallFacts, user: string): 'caller' | 'callee' | undefined {
  if (row.caller === user) return 'caller'
  return row.callee === user ? 'callee' : undefined
}

/** Whether a call to a group rang at somebody; only the one who answered is in it [GROUP1]. */
export function isRung({ row }: CallFacts, user: string): boolean {
  return row.members?.includes(user) === true
}

/** Whether two answered calls became this one: it was answered from the beginning [XFER1]. */
export function isJoined({ events, row }: CallFacts): boolean {
  return row.transferred_from !== undefined && events[0]?.type === 'accepted'
}

/** By the uuid of a call that two answered calls became: the second of these. */
export function secondCalls(facts: Facts): ReadonlyMap<string, CallFacts> {
  return new Map(
    [...facts.values()].flatMap((fact) => {
      const { call_uuid: call, transferred_to: to } = fact.row
      const next = to === undefined ? undefined : facts.get(to)
      return next !== undefined && isJoined(next) && next.row.transferred_from !== call
        ? [[next.row.call_uuid, fact] as const]
        : []
    }),
  )
}

/** The other one of the two people of a call. */
export function peerOf({ row }: CallFacts, user: string): string {
  return row.caller === user ? row.callee : row.caller
}

/** What the database says of each call has to agree with itself. */
export function checkDatabase(facts: Facts, report: Report): void {
  for (const [call, fact] of facts) {
    const { row, events, isOver } = fact
    const versions = events.map(({ version }) => version).join()
    const expected = Array.from({ length: row.version }, (_, i) => i + 1).join()
    if (versions !== expected)
      report('versions', `call_events has ${versions} of a call of version ${row.version}`, { call })
    const ends = events.filter(({ type }) => overStatuses.includes(type))
    const accepts = events.filter(({ type }) => type === 'accepted').length
    if (accepts > 1) report('terminal', `it was accepted ${accepts} times`, { call })
    if (ends.length > 1)
      report('terminal', `ends: ${ends.map(({ type, version }) => `${type} (${version})`)}`, { call })
    if (!isOver) report('terminal', `it is still ${row.status}`, { call })
    else if (ends.length === 0) report('terminal', `it is ${row.status}, and no event says so`, { call })
    else checkEnd(fact, ends[0]!, report)
    if (statusAt(fact, row.version) !== row.status) {
      report('terminal', `it is ${row.status}, and its events say ${statusAt(fact, row.version)}`, { call })
    }
    for (const [status, at] of [
      ['accepted', row.accepted_at],
      ['connected', row.connected_at],
    ] as const) {
      if ((at !== null) !== fact.reached.has(status))
        report('versions', `${status}_at does not agree with its events`, { call })
    }
  }
}

function checkEnd({ row, events }: CallFacts, end: EventRow, report: Report): void {
  const call = row.call_uuid
  if (end !== events.at(-1)) report('terminal', `${events.at(-1)?.type} after its end`, { call })
  if (row.ended_at !== end.at)
    report('terminal', `ended_at is ${row.ended_at}, its last event is of ${end.at}`, { call })
  if (row.status === 'missed' && (row.ended_at ?? 0) < row.ring_expires_at) {
    report('terminal', 'it was missed before its ring was over', { call })
  }
}
