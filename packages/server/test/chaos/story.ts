import type { Entry, Recording } from './recording.ts'
import { markOf } from './relay-text.ts'

/** Everything about one call, from everybody, in the order of time: lines to read. */
export function storyOf({ header, traces, calls, events }: Recording, call: string): string[] {
  const row = calls.find(({ call_uuid }) => call_uuid === call)
  const people = row === undefined ? traces.map(({ user }) => user) : [row.caller, row.callee]
  const lines: { at: number; text: string }[] = []
  for (const { call_uuid, version, type, at, by_user } of events) {
    if (call_uuid === call)
      lines.push({ at: at - header.startedAt, text: `PostgreSQL: ${version} ${type} by ${by_user}` })
  }
  for (const { user, entries } of traces) {
    if (!people.includes(user)) continue
    for (const entry of aroundCall(entries, call)) lines.push({ at: entry.at, text: `${user} ${textOf(entry, call)}` })
  }
  const [first, last] = [Math.min, Math.max].map((choose) => choose(...lines.map(({ at }) => at))) as [number, number]
  for (const { kind, target, from, until } of header.faults) {
    if (until < first - 5_000 || from > last) continue
    lines.push(
      { at: from, text: `FAULT ${kind} ${target}` },
      { at: until, text: `WHOLE again after ${kind} ${target}` },
    )
  }
  const sorted = lines.sort((a, b) => a.at - b.at)
  return [`Call ${call}:`, ...sorted.map(({ at, text }) => `  ${(at / 1000).toFixed(3).padStart(8)} ${text}`)]
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
  const last = entries.findLastIndex(isAbout)
  return entries.slice(Math.max(0, first - 3), last + 4).filter((entry) => {
    if (entry.kind === 'open' || entry.kind === 'close') return opened.has(entry.socket)
    if (isAbout(entry)) return true
    return entry.frame.event === 'auth.ok' || (entry.frame.request_id !== undefined && ids.has(entry.frame.request_id))
  })
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
