import { readFileSync, writeFileSync } from 'node:fs'
import type { CallRecord } from '@ringwire/protocol/rest'
import type { Reply } from '@ringwire/testkit/receiver'

/** One frame of an extended session as it went over the wire; of `data` what anybody here reads. */
export interface Frame {
  readonly event: string
  readonly request_id?: string
  readonly n?: number
  readonly seq?: number
  readonly version?: number
  readonly volatile?: boolean
  readonly data?: FrameData
  readonly error?: FrameError
}

export interface FrameData {
  readonly call_uuid?: string
  readonly status?: string
  readonly reason?: string
  readonly ended_at?: string | null
  readonly recovered?: boolean
  readonly handled?: number
  readonly session_id?: string
  readonly epoch?: string
  readonly active_calls?: readonly Snapshot[]
  readonly volatile?: boolean
  readonly new_call_uuid?: string
  readonly to_call_uuid?: string
  readonly direction?: string
  readonly to?: { readonly user_id: string | null }
  readonly by?: { readonly user_id: string } | null
  readonly from_user_id?: string
  readonly caller_user_id?: string
  readonly callee_user_id?: string
  readonly sdp?: { readonly type: string; readonly sdp: string }
  readonly candidate?: { readonly candidate: string }
  readonly [other: string]: unknown
}

/** One call in `active_calls`. */
export interface Snapshot {
  readonly call_uuid: string
  readonly status: string
  readonly version: number
  readonly direction: string
  readonly holds_place: boolean
  readonly elsewhere?: boolean
  readonly peer?: { readonly user_id: string | null }
}

export interface FrameError {
  readonly code: string
  readonly reason?: string
  readonly status?: string
  readonly call_uuid?: string
  /** The part of the request that is wrong. */
  readonly field?: string
  readonly retryable?: boolean
}

/** What happened at one phone, in order. `at` is in ms since the recording's start, `socket` counts from 0. */
export type Entry =
  | { readonly kind: 'open'; readonly at: number; readonly socket: number; readonly node: number }
  | { readonly kind: 'in' | 'out'; readonly at: number; readonly socket: number; readonly frame: Frame }
  | { readonly kind: 'close'; readonly at: number; readonly socket: number; readonly code: number }

export interface Trace {
  readonly user: string
  readonly entries: readonly Entry[]
}

/** A row of `calls`; instants in ms since the epoch. */
export interface CallRow {
  readonly call_uuid: string
  readonly caller: string
  readonly callee: string
  readonly version: number
  readonly status: string
  readonly started_at: number
  readonly ring_expires_at: number
  readonly accepted_at: number | null
  readonly connected_at: number | null
  readonly ended_at: number | null
  readonly end_reason: string | null
  /** Of a call to a group: at whom it rang, and the group's name, which an older recording does not have [GROUP1]. */
  readonly members?: readonly string[]
  readonly group?: string
  /** Of a call that began as a transfer, and of one that was transferred: the other one's uuid [XFER1]. */
  readonly transferred_from?: string
  readonly transferred_to?: string
  /** Of a call that began as a transfer: the person who asked for it. An older recording does not have it. */
  readonly transferred_by?: string
}

/** A row of `call_events`. */
export interface EventRow {
  readonly call_uuid: string
  readonly version: number
  readonly type: string
  readonly at: number
  readonly by_user: string | null
  /** The session that did it. An older recording has none. */
  readonly by_session?: string | null
  /** Of a turn that begins, or is over: the member who has it [GROUP1]. */
  readonly member?: string
}

export interface History {
  readonly user: string
  readonly records: readonly CallRecord[]
}

/** A webhook about a call, as it arrived; `at` in ms since the recording's start. */
export interface Hook {
  readonly at: number
  readonly call_uuid: string
  readonly version: number
  readonly type: string
  /** Its `webhook-id`. */
  readonly id: string
  /** What the endpoint did with it: 200 takes it. */
  readonly answer: Reply
}

/** A group that rings at one member after another [GROUP1]. */
export interface GroupInTurns {
  readonly name: string
  readonly strategy: 'in_turn' | 'longest_idle'
  /** In the order of the group's list. */
  readonly members: readonly string[]
  /** How long a turn is, in ms. */
  readonly memberRingMs: number
}

/** One fault, from its beginning until what it hit was whole again, in ms since the recording's start. */
export interface FaultRecord {
  readonly kind: string
  readonly target: string
  readonly from: number
  readonly until: number
  /** The one key that was deleted, and whose it was. */
  readonly evicted?: { readonly key: string; readonly user: string }
}

/** A node that ended though nobody asked it to, or badly. */
export interface Crash {
  readonly node: number
  readonly at: number
  readonly code: number | null
  readonly log: string
}

/** What a node logged of an error that is no store's: a bug of the service. */
export interface Bug {
  readonly node: number
  readonly at: number
  readonly line: string
}

/** What several nodes share: one Redis, or a cluster of three masters. */
export type RedisKind = 'one' | 'cluster'

/** What holds calls: SQLite is in the process of the one node that there is. */
export type StoreKind = 'postgresql' | 'sqlite'

/** The people of a run. */
export const userNames = (count: number) => Array.from({ length: count }, (_, i) => `user-${i}`)

export interface Header {
  readonly seed: number
  /** A backend decides on invites [HOOK5]. */
  readonly decides?: true
  readonly nodes: number
  readonly store: StoreKind
  /** A recording from before there was a choice has none. */
  readonly redis?: RedisKind
  readonly users: number
  readonly durationS: number
  /** When it started, in ms since the epoch: the clocks of service and phones are the machine's. */
  readonly startedAt: number
  readonly resumeWindowMs: number
  readonly faults: readonly FaultRecord[]
  readonly crashes: readonly Crash[]
  /** An older recording has none. */
  readonly bugs?: readonly Bug[]
  /** The people and parts that did not come to an end after the last fault. */
  readonly stuck: readonly string[]
  /** People with several phones, or with base clients: their traces are not among these. */
  readonly apart?: readonly string[]
  /** The groups that ring in turn, if there are any. */
  readonly inTurns?: readonly GroupInTurns[]
}

/** All that is known of a run: what the checker reads. */
export interface Recording {
  readonly header: Header
  readonly traces: readonly Trace[]
  /** What the phones of the people of `apart` saw: others are judged by what these sent. An older recording has none. */
  readonly tracesApart?: readonly Trace[]
  readonly calls: readonly CallRow[]
  readonly events: readonly EventRow[]
  readonly histories: readonly History[]
  /** All that came to each endpoint, in order. */
  readonly hooks: readonly (readonly Hook[])[]
}

/** As lines of JSON: the header, each phone's entries, each call with its events, each history, the webhooks of each endpoint. */
export function saveRecording(path: string, recording: Recording): void {
  const { header, traces, tracesApart = [], calls, events, histories, hooks } = recording
  const eventsOf = Map.groupBy(events, ({ call_uuid }) => call_uuid)
  const lines: unknown[] = [{ header }]
  for (const { user, entries } of traces) {
    lines.push({ trace: user })
    for (const entry of entries) lines.push(entry)
  }
  for (const { user, entries } of tracesApart) lines.push({ trace: user, isApart: true }, ...entries)
  for (const call of calls) lines.push({ call, events: eventsOf.get(call.call_uuid) ?? [] })
  for (const history of histories) lines.push({ history })
  for (const came of hooks) lines.push({ hooks: came })
  writeFileSync(path, `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`)
}

type Line =
  | { readonly header: Header }
  | { readonly trace: string; readonly isApart?: true }
  | { readonly call: CallRow; readonly events: readonly EventRow[] }
  | { readonly history: History }
  | { readonly hooks: readonly Hook[] }
  | Entry

export function loadRecording(path: string): Recording {
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
  let header: Header | undefined
  const traces: { user: string; entries: Entry[] }[] = []
  const tracesApart: typeof traces = []
  let last = traces
  const calls: CallRow[] = []
  const events: EventRow[] = []
  const histories: History[] = []
  const hooks: (readonly Hook[])[] = []
  for (const text of lines) {
    const line = JSON.parse(text) as Line
    if ('header' in line) header = line.header
    else if ('trace' in line) {
      last = line.isApart === true ? tracesApart : traces
      last.push({ user: line.trace, entries: [] })
    } else if ('call' in line) {
      calls.push(line.call)
      events.push(...line.events)
    } else if ('history' in line) histories.push(line.history)
    else if ('hooks' in line) hooks.push(line.hooks)
    else last.at(-1)?.entries.push(line)
  }
  if (header === undefined) throw new Error(`${path} is no recording`)
  return { header, traces, tracesApart, calls, events, histories, hooks }
}

export function isRelay(frame: Frame): boolean {
  return frame.event.startsWith('webrtc.')
}
