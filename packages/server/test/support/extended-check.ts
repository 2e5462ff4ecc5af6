import type { ExtendedMessage, Trace, TraceEntry } from '@ringwire/testkit/extended-trace'

/** What is wrong with a trace, each as a line that names it. */
export interface Findings {
  /** Relays that were sent and never came. */
  readonly lost: string[]
  /** Relays that came more often than they were sent. */
  readonly doubled: string[]
  readonly outOfOrder: string[]
  /** Pushes whose seq is not the next one of its session [EXT1]. */
  readonly seq: string[]
  /** Requests without a reply, or with more than one [EXT2]. */
  readonly replies: string[]
  /** A socket's first messages were not auth.ok, then replies that were owed, then pushes [RES1]. */
  readonly order: string[]
  /** Sessions that went on as new ones. */
  readonly notRecovered: string[]
}

export interface Counts {
  readonly sockets: number
  readonly resumes: number
  readonly requests: number
  readonly requestsAgain: number
  readonly replies: number
  readonly pushes: number
  readonly relays: number
  /** Pushes that came in one read with the auth.ok of a resume: the service had kept them. */
  readonly replayed: number
}

export function check(traces: readonly Trace[]): { findings: Findings; counts: Counts } {
  const findings: Findings = {
    lost: [],
    doubled: [],
    outOfOrder: [],
    seq: [],
    replies: [],
    order: [],
    notRecovered: [],
  }
  for (const trace of traces) {
    checkSeq(trace, findings)
    checkReplies(trace, findings)
    checkOrder(trace, findings)
  }
  checkStreams(traces, findings)
  return { findings, counts: countsOf(traces) }
}

type In = Extract<TraceEntry, { kind: 'in' }>
type Asked = Extract<TraceEntry, { kind: 'asked' }>

const messagesOf = ({ entries }: Trace) => entries.filter((entry): entry is In => entry.kind === 'in')
const askedOf = ({ entries }: Trace) => entries.filter((entry): entry is Asked => entry.kind === 'asked')

/** Every push has the next seq of its session, whichever socket it came on. */
function checkSeq(trace: Trace, { seq: wrong, notRecovered }: Findings): void {
  let last = 0
  let sessions = 0
  for (const { message } of messagesOf(trace)) {
    if (message.event === 'auth.ok') {
      if (message.data.recovered) continue
      if (sessions > 0) notRecovered.push(`${trace.userId}: a new session after seq ${last}`)
      sessions++
      last = 0
    } else if (message.seq !== undefined) {
      if (message.seq !== last + 1) wrong.push(`${trace.userId}: ${message.event} ${message.seq} after ${last}`)
      last = message.seq
    }
  }
}

function checkReplies(trace: Trace, { replies: wrong }: Findings): void {
  const open = new Map<string, number>()
  for (const { requestId } of askedOf(trace)) if (requestId !== undefined) open.set(requestId, 0)
  for (const { message } of messagesOf(trace)) {
    const { request_id: id, seq } = message
    if (id === undefined) continue
    if (!open.has(id)) wrong.push(`${trace.userId}: ${message.event} replies to ${id}, which was not asked`)
    if (seq !== undefined) wrong.push(`${trace.userId}: the reply ${message.event} to ${id} has a seq`)
    open.set(id, (open.get(id) ?? 0) + 1)
  }
  for (const [id, count] of open) if (count !== 1) wrong.push(`${trace.userId}: ${count} replies to ${id}`)
}

/** auth.ok first; what was owed for requests that took effect comes before any push [RES1]. */
function checkOrder(trace: Trace, { order: wrong }: Findings): void {
  const numbers = new Map(askedOf(trace).map(({ requestId, n }) => [requestId, n]))
  let socket = -1
  let handled = 0
  let pushed = false
  for (const { socket: on, message } of messagesOf(trace)) {
    const isFirst = on !== socket
    socket = on
    if (isFirst) {
      pushed = false
      handled = message.event === 'auth.ok' && message.data.recovered ? message.data.handled : 0
      if (message.event !== 'auth.ok') wrong.push(`${trace.userId}: ${message.event} before auth.ok`)
    } else if (message.event === 'auth.ok') wrong.push(`${trace.userId}: a second auth.ok`)
    else if (message.seq !== undefined) pushed = true
    else if (pushed && (numbers.get(message.request_id) ?? Number.POSITIVE_INFINITY) <= handled) {
      wrong.push(`${trace.userId}: the reply to ${message.request_id} was owed and came after a push`)
    }
  }
}

/** The mark that a relay carries: what was sent and what came are compared by it. */
function markOf(event: string, data: ExtendedMessage['data']): string {
  const text: string = event === 'webrtc.ice_candidate' ? data.candidate.candidate : data.sdp.sdp
  return `${event} ${text}`
}

/** Per sender, receiver and call: what was sent came once and in order. */
function checkStreams(traces: readonly Trace[], findings: Findings): void {
  const sent = new Map<string, string[]>()
  const came = new Map<string, string[]>()
  const add = (streams: Map<string, string[]>, callUuid: string, from: string, mark: string) => {
    const name = `${callUuid} from ${from}`
    const stream = streams.get(name)
    if (stream === undefined) streams.set(name, [mark])
    else stream.push(mark)
  }
  for (const trace of traces) {
    for (const { event, data } of askedOf(trace)) {
      const relayed = data as ExtendedMessage['data']
      if (event.startsWith('webrtc.')) add(sent, relayed.call_uuid, trace.userId, markOf(event, relayed))
    }
    for (const { message } of messagesOf(trace)) {
      const { event, data } = message
      if (event.startsWith('webrtc.')) add(came, data.call_uuid, data.from_user_id, markOf(event, data))
    }
  }
  for (const name of new Set([...sent.keys(), ...came.keys()])) {
    compareStreams(name, sent.get(name) ?? [], came.get(name) ?? [], findings)
  }
}

function compareStreams(name: string, sent: readonly string[], came: readonly string[], findings: Findings): void {
  const positions = new Map(sent.map((mark, index) => [mark, index]))
  const seen = new Set<string>()
  let furthest = -1
  for (const mark of came) {
    const position = positions.get(mark) ?? -1
    if (seen.has(mark) || position < 0) findings.doubled.push(`${name}: ${mark}`)
    else if (position < furthest) findings.outOfOrder.push(`${name}: ${mark}`)
    seen.add(mark)
    furthest = Math.max(furthest, position)
  }
  for (const mark of sent) if (!seen.has(mark)) findings.lost.push(`${name}: ${mark}`)
}

function countsOf(traces: readonly Trace[]): Counts {
  const entries = traces.flatMap((trace) => trace.entries)
  const messages = traces.flatMap(messagesOf).map(({ message }) => message)
  const again = entries.flatMap((entry) => (entry.kind === 'again' ? [entry.requests] : []))
  return {
    sockets: entries.filter(({ kind }) => kind === 'opened').length,
    resumes: messages.filter(({ event, data }) => event === 'auth.ok' && data.recovered).length,
    requests: traces.flatMap(askedOf).length,
    requestsAgain: again.reduce((sum, requests) => sum + requests, 0),
    replies: messages.filter(({ request_id: id }) => id !== undefined).length,
    pushes: messages.filter(({ seq }) => seq !== undefined).length,
    relays: messages.filter(({ event }) => event.startsWith('webrtc.')).length,
    replayed: traces.reduce((sum, trace) => sum + replayedIn(trace), 0),
  }
}

function replayedIn(trace: Trace): number {
  let replayed = 0
  let hello: In | undefined
  for (const entry of messagesOf(trace)) {
    const { message, socket, read } = entry
    if (message.event === 'auth.ok') hello = message.data.recovered ? entry : undefined
    else if (message.seq !== undefined && hello?.socket === socket && hello.read === read) replayed++
  }
  return replayed
}
