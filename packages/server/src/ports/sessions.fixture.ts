import type { Capability } from '@ringwire/protocol/capabilities'
import type { Participant } from '../call/call.ts'
import { andThen } from './maybe.ts'
import type { Push } from './push.ts'
import { newSessionId } from './session-id.ts'
import type { OpenSession, ResumeRequest, SessionIdentity, SessionStep, Sessions, Sink } from './sessions.ts'

/** A socket that takes everything at once and stays open. `more` is what a test looks at. */
export function openSink(more: Partial<Sink>): Sink {
  return {
    send() {},
    pushed() {},
    writtenSeq: 0,
    probe: async () => true,
    close() {},
    retire: async () => {},
    isBusy: false,
    isClosed: false,
    ...more,
  }
}

/** A push as it reached a client. */
export interface Told {
  readonly event: string
  readonly data: { readonly n: number }
  readonly seq?: number
  readonly version?: number
}

/** A socket that keeps what it is handed. */
export interface Socket extends Sink {
  readonly told: Told[]
  /** What `pushed` said, in order. */
  readonly pushedSeqs: number[]
  /** The codes that it was closed with. */
  readonly closes: number[]
  /** How often it was retired. */
  retirements: number
  isBusy: boolean
  isClosed: boolean
  /** False: what it is handed waits, and is not written. */
  writes: boolean
  writtenSeq: number
}

export function createSocket(): Socket {
  const told: Told[] = []
  const pushedSeqs: number[] = []
  const closes: number[] = []
  return {
    told,
    pushedSeqs,
    closes,
    retirements: 0,
    writes: true,
    writtenSeq: 0,
    send: (text) => void told.push(JSON.parse(text)),
    pushed(seq) {
      pushedSeqs.push(seq)
      if (this.writes) this.writtenSeq = seq
    },
    probe: async () => true,
    close: (code) => void closes.push(code),
    async retire() {
      this.retirements++
    },
    isBusy: false,
    isClosed: false,
  }
}

let people = 0
/** A participant that no other test has: the sessions of one store do not meet. */
export function somebody(): Participant {
  people++
  return { product: 'shop', role: 'agent', userId: `user-${people}-${crypto.randomUUID()}` }
}

export interface Wish {
  readonly participant?: Participant
  readonly deviceId?: string | null | undefined
  readonly extended?: boolean
  readonly expiresAt?: number | undefined
  readonly appVersion?: string | null | undefined
  readonly can?: readonly Capability[]
}

export function identityOf(wish: Wish = {}): SessionIdentity {
  const { participant = somebody(), extended = true, expiresAt, appVersion, can } = wish
  const deviceId = 'deviceId' in wish ? wish.deviceId : 'phone'
  const identity = { sessionId: newSessionId(participant), participant, deviceId, extended, expiresAt, appVersion }
  return can === undefined ? identity : { ...identity, can }
}

/** A session with its socket. */
export interface Seen extends OpenSession {
  readonly identity: SessionIdentity
  readonly id: string
  readonly socket: Socket
}

/** A new session that has got everything there was. */
export async function openReady(sessions: Sessions, wish: Wish = {}, at = 0): Promise<Seen> {
  const identity = identityOf(wish)
  const socket = createSocket()
  const open = await sessions.open(identity, socket, at)
  await sessions.ready(identity.sessionId)
  return { ...open, identity, id: identity.sessionId, socket }
}

export const resumeOf = ({ id, epoch }: Seen, seq: number): ResumeRequest => ({ sessionId: id, epoch, seq })

/** Steps that are about one thing each, of sessions that may be anywhere. */
export function stepsOf(sessions: { apply(sessionId: string, step: SessionStep): ReturnType<Sessions['apply']> }) {
  const { apply } = sessions
  const done = (applied: ReturnType<typeof apply>) => andThen(applied, (early) => early !== undefined)
  const placed = (settled: boolean) => (settled ? 'settled' : 'unsettled')
  return {
    /** False if there is no such session. */
    hold(id: string, call: string, settled: boolean, gate = false, version?: number, isLost = false) {
      return done(apply(id, { call, place: placed(settled), gate, isLost, ...(version !== undefined && { version }) }))
    },
    /** The messages that its client sent before the accept; false if there is no such session. */
    answer(id: string, call: string, settled: boolean, version?: number) {
      const step = {
        call,
        place: placed(settled),
        isAnswered: true,
        ...(version !== undefined && { version }),
      } as const
      return andThen(apply(id, step), (early) => early ?? false)
    },
    openGate: (id: string, call: string, early: readonly Push[]) => done(apply(id, { call, early })),
    release: (id: string, call: string) => done(apply(id, { call, isOver: true })),
    ring: (id: string, call: string) => done(apply(id, { call, isRinging: true })),
    openDetached: (identity: SessionIdentity, at: number) =>
      done(apply(identity.sessionId, { call: '', orOpen: { identity, at } })),
  }
}
