// The messages on the wire, as entries that a person can read.

import { createStore } from './store.ts'

export type Family = 'auth' | 'call' | 'webrtc' | 'presence' | 'error'
export const families: readonly Family[] = ['auth', 'call', 'webrtc', 'presence', 'error']

type Envelope = Readonly<Record<string, unknown>>

/** Envelopes of one event that follow each other are one entry, where nobody reads each of them. */
export type LogEntry = {
  readonly id: number
  /** In ms since the epoch. */
  readonly at: number
} & (
  | { readonly note: string }
  | {
      readonly direction: 'sent' | 'received'
      readonly event: string
      readonly family: Family | undefined
      readonly about: string
      readonly envelopes: readonly Envelope[]
    }
)
export type EnvelopeEntry = Extract<LogEntry, { event: string }>

const maxEntries = 400
const tokenShape = /eyJ[\w-]+\.[\w-]+\.[\w-]+/g
const foldable = new Set(['webrtc.ice_candidate', 'call.ack'])

/** Tokens travel outside of envelopes; one that got into one is hidden, as are the passwords of TURN servers. */
export function readEnvelope(message: string): Envelope {
  try {
    const hide = (key: string, value: unknown) => (key === 'credential' ? '(credential)' : value)
    const value: unknown = JSON.parse(message.replace(tokenShape, '(token)'), hide)
    return typeof value === 'object' && value !== null ? { ...value } : { unreadable: true }
  } catch {
    return { unreadable: true }
  }
}

/** The signal that a person most wants to see without opening the entry. */
function aboutOf(envelope: Envelope): string {
  const data = (envelope.data ?? {}) as Record<string, unknown>
  const error = envelope.error as { code?: unknown } | undefined
  if (error?.code) return String(error.code)
  const candidate = data.candidate as { candidate?: string } | undefined
  if (candidate?.candidate) return candidate.candidate.match(/typ (\w+)/)?.[1] ?? ''
  const status = [data.status, data.reason].filter((word) => typeof word === 'string')
  return status.length > 0 ? status.join(' · ') : String(data.display_name ?? data.callee_user_id ?? '')
}

function entryOf(id: number, at: number, direction: 'sent' | 'received', envelope: Envelope): EnvelopeEntry {
  const event = typeof envelope.event === 'string' ? envelope.event : 'unreadable'
  const family = event === 'call.error' ? 'error' : families.find((name) => event.startsWith(`${name}.`))
  return { id, at, direction, event, family, about: aboutOf(envelope), envelopes: [envelope] }
}

function isFoldable(entry: LogEntry): entry is EnvelopeEntry {
  return 'event' in entry && foldable.has(entry.event)
}

/**
 * Candidates and acknowledgements come in bursts: each joins the entry of its event and direction, unless something else
 * has passed since.
 */
export function fold(entries: readonly LogEntry[], entry: LogEntry): readonly LogEntry[] {
  if (isFoldable(entry)) {
    for (let at = entries.length - 1; at >= 0; at--) {
      const before = entries[at]
      if (!before || !isFoldable(before)) break
      if (before.event !== entry.event || before.direction !== entry.direction) continue
      const words = new Set([...before.about.split(', '), entry.about].filter(Boolean))
      const about = [...words].join(', ')
      return entries.with(at, { ...before, about, envelopes: [...before.envelopes, ...entry.envelopes] })
    }
  }
  return [...entries, entry].slice(-maxEntries)
}

/**
 * For others to read, as in a report: the log as it is shown, without the parts that only belong to this machine and this
 * call. A description holds the keys of the connection; it and the candidates hold addresses.
 */
export function copyText(entries: readonly LogEntry[]): string {
  const shorten = (key: string, value: unknown) => {
    if (key === 'sdp' && typeof value === 'string') return `(${value.split('\r\n').length} lines)`
    if (key === 'candidate' && typeof value === 'string') return `(${value.match(/typ \w+/)?.[0] ?? 'end'})`
    return key === 'usernameFragment' ? undefined : value
  }
  const plain = entries.map((entry) => {
    const at = new Date(entry.at).toISOString()
    return 'note' in entry ? { at, note: entry.note } : { at, [entry.direction]: entry.envelopes }
  })
  return JSON.stringify(plain, shorten, 2)
}

export function createLog() {
  const entries = createStore<readonly LogEntry[]>([])
  let next = 0

  function add(direction: 'sent' | 'received', message: string): Envelope {
    const envelope = readEnvelope(message)
    entries.set(fold(entries.get(), entryOf(next++, Date.now(), direction, envelope)))
    return envelope
  }

  return {
    entries,
    sent: (message: string): void => void add('sent', message),
    received: (message: string): Envelope => add('received', message),
    note: (note: string): void => entries.set(fold(entries.get(), { id: next++, at: Date.now(), note })),
    clear: (): void => entries.set([]),
  }
}

export type Log = ReturnType<typeof createLog>
