import type { Entry, Frame, Trace } from '../recording.ts'

/** A push as it came. `at` is in ms since the recording's start, `index` its place in the phone's trace. */
export interface SeenPush {
  readonly frame: Frame
  readonly at: number
  readonly index: number
}

/** A request that went out, once or more often, and the reply, where one came. */
export interface SeenRequest {
  readonly session: SeenSession
  readonly n: number
  readonly frame: Frame
  readonly firstAt: number
  /** How often it went out, and when it did so last. */
  sent: number
  lastAt: number
  readonly replies: SeenPush[]
}

/** A part of a session in which nothing may be missing: it ends where a loss is declared. */
export interface Stretch {
  readonly session: SeenSession
  readonly from: number
  /** When the loss was declared; infinity: never. */
  until: number
  readonly pushes: SeenPush[]
}

/** One extended session, over all of its sockets. */
export interface SeenSession {
  readonly user: string
  readonly id: string
  readonly stretches: Stretch[]
  /** By n. */
  readonly requests: Map<number, SeenRequest>
}

/** `auth.ok` and `session.reset`: what says how a session goes on, and which calls are live. */
export interface SeenState extends SeenPush {
  readonly kind: 'new' | 'recovered' | 'reset'
  readonly session: SeenSession
  /** The part of a session that ends here, and what it may have lost with it. */
  readonly ends: Stretch | undefined
  /** When its socket was opened, and to which node. */
  readonly openedAt: number
  readonly node: number
  /** The phone opened another socket shortly before, and heard nothing on it: a session that it does not know may be there. */
  readonly attempted: boolean
  /** The same of a socket that asked for no session that was there: one of its own began there, and has its places. */
  readonly begunElsewhere: boolean
}

/** One phone's trace, put into order. */
export interface Reading {
  readonly user: string
  readonly sessions: readonly SeenSession[]
  readonly stretches: readonly Stretch[]
  readonly states: readonly SeenState[]
  readonly requests: readonly SeenRequest[]
  /** When it had a socket and its `auth.ok`, and to which node. */
  readonly online: readonly { readonly from: number; readonly until: number; readonly node: number | undefined }[]
  /** What no rule allows at all. */
  readonly strange: readonly SeenPush[]
}

/**
 * How long a store may be away, and the probe of a dead holder may take after that [PLACE4], in ms, before somebody lost
 * its socket.
 */
const attemptMs = 15_000

export function read({ user, entries }: Trace): Reading {
  const reader = new Reader(user)
  entries.forEach((entry, index) => {
    reader.take(entry, index)
  })
  return reader
}

class Reader implements Reading {
  readonly user: string
  readonly sessions: SeenSession[] = []
  readonly stretches: Stretch[] = []
  readonly states: SeenState[] = []
  readonly requests: SeenRequest[] = []
  readonly online: { from: number; until: number; node: number | undefined }[] = []
  readonly strange: SeenPush[] = []
  private session: SeenSession | undefined
  private stretch: Stretch | undefined
  /** The socket that auth.ok came on. */
  private socket = -1
  private readonly opened = new Map<number, Extract<Entry, { kind: 'open' }>>()
  /** When sockets were opened that nothing has come on, and whether there was no session yet. */
  private readonly silent = new Map<number, { readonly at: number; readonly isFirst: boolean }>()
  private early: SeenPush[] = []
  private readonly byId = new Map<string, SeenRequest>()

  constructor(user: string) {
    this.user = user
  }

  take(entry: Entry, index: number): void {
    if (entry.kind === 'open') {
      this.opened.set(entry.socket, entry)
      this.silent.set(entry.socket, { at: entry.at, isFirst: this.session === undefined })
    }
    if (entry.kind === 'out') this.asked(entry.frame, entry.at)
    if (entry.kind === 'close' && entry.socket === this.socket) this.closed(entry.at)
    if (entry.kind !== 'in') return
    this.silent.delete(entry.socket)
    const seen = { frame: entry.frame, at: entry.at, index }
    if (entry.frame.event === 'auth.ok') {
      this.socket = entry.socket
      this.hello(seen)
      const node = this.opened.get(entry.socket)?.node
      this.online.push({ from: entry.at, until: Number.POSITIVE_INFINITY, node })
    } else if (entry.socket !== this.socket || this.session === undefined) this.comesEarly(seen)
    else if (entry.frame.request_id !== undefined) this.reply(seen, this.session)
    else if (entry.frame.event === 'session.reset') this.reset(seen, this.session)
    else this.stretch?.pushes.push(seen)
  }

  private closed(at: number): void {
    const last = this.online.at(-1)
    if (last !== undefined) last.until = Math.min(last.until, at)
  }

  /** Before `auth.ok` nothing may come; a push that still comes belongs to the session that it names. */
  private comesEarly(seen: SeenPush): void {
    this.strange.push(seen)
    if (seen.frame.seq !== undefined) this.early.push(seen)
  }

  private hello(seen: SeenPush): void {
    const { session_id: id = '', recovered } = seen.frame.data ?? {}
    if (this.session === undefined || recovered !== true) {
      this.session = { user: this.user, id, stretches: [], requests: new Map() }
      this.sessions.push(this.session)
      this.begin(this.session, seen.at)
    } else if (id !== this.session.id) this.strange.push(seen)
    this.stretch?.pushes.push(...this.early.splice(0))
    this.state(recovered === true ? 'recovered' : 'new', seen, this.session)
  }

  private reset(seen: SeenPush, session: SeenSession): void {
    this.begin(session, seen.at)
    this.stretch?.pushes.push(seen)
    this.state('reset', seen, session)
  }

  private begin(session: SeenSession, at: number): void {
    if (this.stretch !== undefined) this.stretch.until = at
    this.stretch = { session, from: at, until: Number.POSITIVE_INFINITY, pushes: [] }
    this.stretches.push(this.stretch)
    session.stretches.push(this.stretch)
  }

  private state(kind: SeenState['kind'], seen: SeenPush, session: SeenSession): void {
    const lostAt = Math.min(seen.at, this.online.at(-1)?.until ?? seen.at)
    const attempts = [...this.silent.values()].filter(({ at }) => lostAt - at < attemptMs)
    const attempted = attempts.length > 0
    const begunElsewhere = attempts.some(({ isFirst }) => isFirst)
    const { at: openedAt = 0, node = -1 } = this.opened.get(this.socket) ?? {}
    const ends = kind === 'recovered' ? undefined : this.stretches.at(-2)
    this.states.push({ ...seen, kind, session, ends, openedAt, node, attempted, begunElsewhere })
  }

  private asked(frame: Frame, at: number): void {
    const { session } = this
    if (session === undefined || frame.n === undefined) return
    const known = session.requests.get(frame.n)
    if (known !== undefined) {
      known.sent++
      known.lastAt = at
      return
    }
    const request: SeenRequest = { session, n: frame.n, frame, firstAt: at, sent: 1, lastAt: at, replies: [] }
    session.requests.set(frame.n, request)
    this.requests.push(request)
    if (frame.request_id !== undefined) this.byId.set(frame.request_id, request)
  }

  private reply(seen: SeenPush, session: SeenSession): void {
    const request = this.byId.get(seen.frame.request_id ?? '')
    if (request === undefined || request.session !== session) this.strange.push(seen)
    else request.replies.push(seen)
  }
}

/** What a request came to, as its client knows it. */
export type Outcome = 'done' | 'refused' | 'maybe'

/** An error that may be retried can hide a commit of unknown outcome, and no reply says nothing at all. */
export function outcomeOf({ replies }: SeenRequest): Outcome {
  const reply = replies[0]?.frame
  if (reply === undefined || reply.error?.retryable === true) return 'maybe'
  return reply.error === undefined ? 'done' : 'refused'
}

export function isVolatile(frame: Frame): boolean {
  return frame.volatile === true || frame.data?.volatile === true
}
