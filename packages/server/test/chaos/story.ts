import type { CallRow, Entry, FaultRecord, Header, Recording } from './recording.ts'
import { markOf } from './relay-text.ts'

interface Line {
  readonly at: number
  readonly text: string
}

/** Everything about one call, from everybody, in the order of time: lines to read. */
export function storyOf({ header, traces, calls, events, hooks }: Recording, call: string): string[] {
  const row = calls.find(({ call_uuid }) => call_uuid === call)
  const people = row === undefined ? traces.map(({ user }) => user) : [row.caller, row.callee, ...(row.members ?? [])]
  const lines: Line[] = []
  for (const { call_uuid, version, type, at, by_user } of events) {
    if (call_uuid === call) lines.push({ at: at - header.startedAt, text: `stored: ${version} ${type} by ${by_user}` })
  }
  for (const [index, came] of hooks.entries()) {
    for (const { call_uuid, version, type, id, at, answer } of came)
      if (call_uuid === call)
        lines.push({ at, text: `endpoint-${index}: ${version} ${type} ${id}, answered ${answer}` })
  }
  for (const { user, entries } of traces) {
    // One of several phones has a name of its own.
    if (!people.includes(user.split(', ')[0] ?? '')) continue
    const near = aroundCall(entries, call)
    const seen = near.length > 0 ? near : socketsWhile(entries, row, header)
    for (const entry of seen) lines.push({ at: entry.at, text: `${user} ${textOf(entry, call)}` })
  }
  return inOrder(`Call ${call}:`, lines, header.faults)
}

/** How far back a story shows how somebody's sockets came and went, in ms. */
const visitsMs = 20_000

/** The sockets of one person until an instant, those that came to nothing too, in the order of time: lines to read. */
export function visitsOf({ header, traces }: Recording, user: string, until: number): string[] {
  const entries = traces.find((trace) => trace.user === user)?.entries ?? []
  const near = entries.filter(({ at }) => at > until - visitsMs && at <= until)
  const lines = near.filter(isOfSocket).map((entry) => ({ at: entry.at, text: `${user} ${textOf(entry, '')}` }))
  return inOrder(`${user} until ${(until / 1000).toFixed(3)} s:`, lines, header.faults)
}

/** With the faults that were near. */
function inOrder(title: string, told: readonly Line[], faults: readonly FaultRecord[]): string[] {
  const lines = [...told]
  const [first, last] = [Math.min, Math.max].map((choose) => choose(...lines.map(({ at }) => at))) as [number, number]
  for (const fault of faults) {
    const { from, until } = fault
    if (until < first - 5_000 || from > last) continue
    lines.push({ at: from, text: `FAULT ${nameOf(fault)}` })
    if (until > from) lines.push({ at: until, text: `WHOLE again after ${nameOf(fault)}` })
  }
  const sorted = lines.sort((a, b) => a.at - b.at)
  return [title, ...sorted.map(({ at, text }) => `  ${(at / 1000).toFixed(3).padStart(8)} ${text}`)]
}

function nameOf({ kind, target, evicted }: FaultRecord): string {
  return [kind, target, ...(evicted === undefined ? [] : [`${evicted.key} of ${evicted.user}`])].join(' ')
}

/** What a phone saw of the call, with its sockets for as long as the call is its business. */
function aroundCall(entries: readonly Entry[], call: string): readonly Entry[] {
  const isAbout = (entry: Entry) =>
    (entry.kind === 'in' || entry.kind === 'out') &&
    (entry.frame.data?.call_uuid === call ||
      entry.frame.data?.active_calls?.some(({ call_uuid }) => call_uuid === call) === true)
  const ids = new Set(
    entries.flatMap((entry) => (entry.kind === 'out' && isAbout(entry) ? [entry.frame.request_id] : [])),
  )
  // The others are attempts that came to nothing.
  const opened = new Set(entries.flatMap((entry) => (entry.kind === 'in' ? [entry.socket] : [])))
  const first = entries.findIndex(isAbout)
  if (first < 0) return []
  const last = entries.findLastIndex(isAbout)
  return entries.slice(Math.max(0, first - 3), last + 4).filter((entry) => {
    if (entry.kind === 'open' || entry.kind === 'close') return opened.has(entry.socket)
    if (isAbout(entry)) return true
    return entry.frame.event === 'auth.ok' || (entry.frame.request_id !== undefined && ids.has(entry.frame.request_id))
  })
}

/** How the sockets came and went, while it was live, of somebody who saw nothing of a call. */
function socketsWhile(entries: readonly Entry[], row: CallRow | undefined, { startedAt }: Header): readonly Entry[] {
  if (row === undefined) return []
  const [from, until] = [row.started_at - startedAt - visitsMs, (row.ended_at ?? row.started_at) - startedAt + visitsMs]
  return entries.filter((entry) => entry.at > from && entry.at < until && isOfSocket(entry))
}

/** A socket, or what says how its session goes on. */
function isOfSocket(entry: Entry): boolean {
  return !('frame' in entry) || entry.frame.event === 'auth.ok' || entry.frame.event === 'session.reset'
}

function textOf(entry: Entry, call: string): string {
  if (entry.kind === 'open') return `opens socket ${entry.socket} to node ${entry.node}`
  if (entry.kind === 'close') return `socket ${entry.socket} closed with ${entry.code}`
  const { event, request_id: id, n, seq, version, data, error } = entry.frame
  const parts = [
    entry.kind === 'in' ? '<-' : '->',
    event,
    ...(id === undefined ? [] : [`[${id}]`]),
    ...(n === undefined ? [] : [`n ${n}`]),
    ...(seq === undefined ? [] : [`seq ${seq}`]),
    ...(version === undefined ? [] : [`version ${version}`]),
    ...(data?.status === undefined ? [] : [data.status]),
    ...(data?.reason === undefined ? [] : [`(${data.reason})`]),
    ...(error === undefined ? [] : [error.code]),
    ...(markOf(entry.frame) === undefined ? [] : [`relay ${markOf(entry.frame)}`]),
    ...(event === 'auth.ok' ? [`recovered ${data?.recovered} handled ${data?.handled}`] : []),
    ...(data?.active_calls ?? [])
      .filter(({ call_uuid }) => call_uuid === call)
      .map(({ status, version: v, holds_place }) => `lists it: ${status} version ${v} holds_place ${holds_place}`),
    `(socket ${entry.socket})`,
  ]
  return parts.join(' ')
}
