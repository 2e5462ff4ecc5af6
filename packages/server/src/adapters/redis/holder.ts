import type { SessionIdentity } from '../../ports/sessions.ts'
import type { Entry, Reply, ScriptName } from './connection.ts'
import {
  callFields,
  finish,
  forgetCall,
  forgetUntold,
  type Heard,
  type Held,
  learnPlaces,
  loseLog,
  offer,
  offerAll,
} from './held.ts'
import { openArgs } from './identity.ts'

/** A socket that this node held last of a session, or holds. */
export type LastSocket = Pick<Held, 'socket' | 'sink' | 'upstream' | 'identity' | 'closed'> & { readonly at: number }

/** A log that could not be read is read again so much later, in ms. */
const againMs = 1_000

export interface HolderOptions {
  /** Runs a script over the session's slot; undefined for what is no session id. */
  readonly run: (name: ScriptName, sessionId: string, args: readonly (string | number)[]) => Promise<Reply | undefined>
  readonly now: () => number
  readonly onLogLost: (identity: SessionIdentity, epoch: string, ringing: readonly string[]) => void
  readonly onError: (error: unknown) => void
}

export interface Holder {
  readonly held: Map<string, Held>
  readonly last: Map<string, LastSocket>
  /** News from the store: hints, or what a script answered. */
  hear(message: string): void
  hearAll(messages: Reply | undefined): void
  /** Hands over one push, in its turn. */
  take(session: Held, heard: Heard): void
  /** Reads on where something was heard of that was not handed over. */
  catchUp(session: Held): void
  giveUp(session: Held): void
  /** The store says that this is not the session's socket, and whether another one is. */
  moved(session: Held, isReplaced: boolean): void
  /** Gives the store what is known here of a session that it lost; answers the epoch of its log, or '' where it knows it. */
  restore(session: Held): Promise<string>
  /** The store lost the log of a session with a socket: it begins again, with what is known here [RES4]. */
  beginAgain(session: Held): Promise<void>
  compare(session: Held): Promise<void>
  compareHeads(all: boolean): Promise<void>
  /** Resolves when no read is under way. */
  idle(): Promise<void>
}

/** The sockets that this node holds, and what is handed to them: in the order of their logs, each push once [ORD2]. */
export function createHolder({ run, now, onLogLost, onError }: HolderOptions): Holder {
  const held = new Map<string, Held>()
  const last = new Map<string, LastSocket>()
  const reads = new Set<Promise<void>>()

  function hearAll(messages: Reply | undefined): void {
    for (const message of messages ?? []) hear(String(message))
  }

  function hear(message: string): void {
    const lineEnd = message.indexOf('\n')
    const [what, id = '', socket, ...rest] = (lineEnd < 0 ? message : message.slice(0, lineEnd)).split(' ')
    const session = held.get(id)
    if (session === undefined || session.socket !== socket) return
    const [first = '', call = ''] = rest
    if (what === 'P' || what === 'R') session.heard++
    if (what === 'E') hearPush(session, rest, message.slice(lineEnd + 1))
    else if (what === 'L') lost(session, first)
    else if (what === 'W') compare(session).catch(onError)
    else if (what === 'V') forgetCall(session, first)
    else if (what === 'F') finish(session, first)
    else if (what === 'X') replaced(session)
    else if (what === 'R' && first === '1') session.ringing.add(call)
    else if (what === 'R') session.ringing.delete(call)
    else if (what === 'P' && first !== '-') session.places.set(call, first === '1')
    else if (what === 'P') {
      session.places.delete(call)
      session.ringing.delete(call)
    }
  }

  function hearPush(session: Held, [epoch, ...fields]: readonly string[], text: string): void {
    if (epoch === session.epoch) take(session, pushOf(fields, text))
    // Of a log that was lost, and late; or of one that this node has yet to hear of.
    else compare(session).catch(onError)
  }

  function take(session: Held, heard: Heard): void {
    if (offer(session, heard)) read(session)
  }

  /** Reads what came before something that was heard of. */
  function read(session: Held): void {
    if (session.reading || !session.ready) return
    session.reading = true
    const reading = readOn(session)
      .catch((error) => {
        onError(error)
        readLater(session)
      })
      .finally(() => reads.delete(reading))
    reads.add(reading)
  }

  /** Nobody else says once more that something is there. */
  function readLater(session: Held): void {
    const timer = setTimeout(() => {
      if (held.get(session.identity.sessionId) === session && session.head > session.delivered) read(session)
    }, againMs)
    timer.unref()
  }

  async function readOn(session: Held): Promise<void> {
    const id = session.identity.sessionId
    try {
      for (let isBehind = true; isBehind && session.ready && held.get(id) === session; ) {
        const { epoch: asked } = session
        const reply = (await run('read', id, [id, session.socket, session.delivered])) ?? []
        const [epoch, head, entries, ...messages] = reply
        if (epoch === 'gone') return void compare(session).catch(onError)
        // Part of it would be less than nothing: its client comes back, and is told how its calls are.
        if (epoch === 'trimmed') return session.sink.close(1013, 'try again later')
        hearAll(messages)
        // The log began again while this was under way: from its begin, then.
        if (session.epoch !== asked) continue
        if (epoch !== asked) return void compare(session).catch(onError)
        offerAll(session, entries as Entry[], Number(head))
        isBehind = session.head > session.delivered
      }
    } finally {
      // In the same step as the last look at `head`: whatever comes later begins another read.
      session.reading = false
    }
  }

  /** A newer socket of the session was faster than whoever has to retire this one [RES1]. */
  function replaced(session: Held): void {
    giveUp(session)
    session.sink.retire().catch(onError)
  }

  /**
   * The store says that this is not the session's socket. Another node may have taken this one for dead: its client comes
   * back, and finds everything.
   */
  function leave(session: Held): void {
    giveUp(session)
    session.sink.close(1013, 'try again later')
  }

  function moved(session: Held, isReplaced: boolean): void {
    if (held.get(session.identity.sessionId) !== session) return
    if (isReplaced) replaced(session)
    else leave(session)
  }

  /** The socket is another's by now. */
  function giveUp(session: Held): void {
    const id = session.identity.sessionId
    if (held.get(id) !== session) return
    held.delete(id)
    last.set(id, { ...session, at: now() })
  }

  function lost(session: Held, epoch: string): void {
    if (session.epoch === epoch) return
    loseLog(session, epoch)
    onLogLost(session.identity, epoch, [...session.ringing].map(decodeURIComponent))
    read(session)
  }

  /** Gives the store what is known here of a session that it lost; answers the epoch of its log, or '' where it knows it. */
  async function restore(session: Held): Promise<string> {
    const { extended } = session.identity
    forgetUntold(session)
    // The first of the new log is for what is told of the loss.
    const fields = extended ? ['rd', '0', 'q', '1', 'rf', '1'] : ['rd', session.ready ? '1' : '0']
    fields.push('op', String(session.openedAt), ...callFields(session))
    const id = session.identity.sessionId
    const [epoch = '', ...messages] =
      (await run('open', id, [...openArgs(session.identity, session.socket, now()), ...fields])) ?? []
    hearAll(messages)
    return String(epoch)
  }

  /** The store lost the log of a session with a socket: it begins again [RES4]. */
  async function beginAgain(session: Held): Promise<void> {
    const epoch = await restore(session)
    if (epoch === '') leave(session)
    else lost(session, epoch)
  }

  async function compare(session: Held): Promise<void> {
    const id = session.identity.sessionId
    const { epoch: asked, heard } = session
    const [epoch, head, calls, ...messages] =
      (await run('head', id, [id, session.socket, session.delivered, session.epoch])) ?? []
    if (held.get(id) !== session || session.epoch !== asked) return
    if (epoch === 'taken') return leave(session)
    // What was said of its calls meanwhile may be newer.
    if (calls !== undefined && session.heard === heard) learnPlaces(session, calls as unknown as string[])
    hearAll(messages)
    if (epoch === 'gone') return beginAgain(session)
    lost(session, String(epoch))
    session.head = Math.max(session.head, Number(head))
    if (session.ready && session.head > session.delivered) read(session)
  }

  async function compareHeads(all: boolean): Promise<void> {
    const chosen = [...held.values()].filter(({ places, ringing }) => all || places.size > 0 || ringing.size > 0)
    // In parts: other commands go in between.
    const failures: unknown[] = []
    const look = (session: Held) => compare(session).catch((error) => void failures.push(error))
    for (let i = 0; i < chosen.length; i += 100) await Promise.all(chosen.slice(i, i + 100).map(look))
    if (failures.length > 0) throw failures[0]
  }

  return {
    held,
    last,
    hear,
    hearAll,
    take,
    catchUp(session) {
      if (session.head > session.delivered) read(session)
    },
    giveUp,
    moved,
    restore,
    beginAgain,
    compare,
    compareHeads,
    async idle() {
      while (reads.size > 0) await Promise.all(reads)
    },
  }
}

function pushOf([seq, kind = '', version = '', call = '']: readonly string[], text: string): Heard {
  return { seq: Number(seq), kind, version, call, text }
}
