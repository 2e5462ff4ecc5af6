import { type Call, type Participant, placeOf } from '../../call/call.ts'
import { type AppendResult, isRelay, type Push } from '../../ports/push.ts'
import type { KeepResult, SessionIdentity, Sessions } from '../../ports/sessions.ts'
import { StoreError } from '../../ports/store-error.ts'
import { participantHash, tagOfHash, tagOfSessionId } from '../../session/session-id.ts'
import { type Channel, createChannel } from './channel.ts'
import { createStore, type Entry, type Reply, type ScriptName, type Store } from './connection.ts'
import { createDepartures, type Departure } from './departures.ts'
import { createHeld, type Heard, type Held, nameOf, newUpstream, offerAll, tellReset } from './held.ts'
import { createHolder, type LastSocket } from './holder.ts'
import { deviceField, deviceOf, newSocket, openArgs } from './identity.ts'
import { createResume, type Found } from './resume.ts'
import { answer, anySocket, createSockets } from './sockets.ts'
import { createTold } from './told.ts'

export interface RedisSessionsOptions {
  readonly url: string
  /** Where it is used for more than the sessions. */
  readonly store?: Store
  /** Names this run of this node: no other has had the name. */
  readonly node: string
  /** How long final notices are worth telling, in ms [WS4]. */
  readonly windowMs: number
  /** How long an extended session can be resumed, in ms [RES1]. */
  readonly resumeWindowMs: number
  /** The log of a session was lost while its socket is open, and these calls ring there [RES4]. */
  readonly onLogLost: (identity: SessionIdentity, epoch: string, ringing: readonly string[]) => void
  /** What another node has just committed to a call. */
  readonly onCall?: (call: Call) => void
  readonly onError: (error: unknown) => void
}

export interface RedisSessions {
  readonly sessions: Sessions
  /** See `Nodes`. */
  tell(call: Call): void
  /** Whether a node is known for sure not to say here that it lives, though it could. */
  isGone(node: string): boolean
  /** Whether this node could say here just now that it lives. */
  isReady(): boolean
  start(): Promise<void>
  /** Reads what the sockets of this node have missed, and finds logs that were lost. */
  compareHeads(): Promise<void>
  /**
   * Resolves when everything that was appended before has been handed to the sockets of this node; rejects where the node
   * hears nothing for half a minute.
   */
  settled(): Promise<void>
  /** Hands over what other nodes need to go on with the sessions of this one. */
  close(): Promise<void>
}

/** Of a call's versions, where none is named. */
const newest = Number.MAX_SAFE_INTEGER
/** Heads of sessions in calls, and of all others, are compared so often, in ms. */
const compareMs = 5_000
/** A beat a second, and the way of one. */
const readyMs = 2_000
const compareAllEvery = 12
/** Each waits for 3 s. */
const settleRounds = 10

/** A session with a socket; `device` as `deviceField` writes it. */
interface Live {
  readonly id: string
  readonly device: string
  readonly extended: boolean
  readonly openedAt: number
  /** Of its client; '' where it is not known. */
  readonly version: string
}

/** The sessions of all nodes, in Redis; this node holds the sockets of some. */
export function createRedisSessions(options: RedisSessionsOptions): RedisSessions {
  const { node, onError } = options
  const store = options.store ?? createStore(options.url, onError)
  const longestMs = Math.max(options.windowMs, options.resumeWindowMs)
  /** The time, as whoever uses this last said. */
  let now = 0
  let comparing: Timer | undefined
  let comparisons = 0
  let isComparing = false
  const told = createTold(store, { now: () => now, awayMs: () => channel.awayMs() })
  const onLogLost: typeof options.onLogLost = (...lost) => {
    // What this node told may be gone with it.
    told.doubt()
    options.onLogLost(...lost)
  }
  const holder = createHolder({ run, now: () => now, onLogLost, onError })
  const { held, last, hear, hearAll, take, giveUp, beginAgain, compare } = holder
  const channel: Channel = createChannel({
    url: options.url,
    store,
    node,
    onNews: hear,
    onRequest: (op, id, socket, rest) => answer(holder, op, id, socket, rest, park),
    onCall: options.onCall ?? (() => {}),
    onForgotten: () => told.restore(),
    onRebuilt: () => holder.compareHeads(true),
    onError,
  })
  const departures = createDepartures(holder, { run, now: () => now, onError })
  const { leaveFor, mayHaveSocket } = departures
  const sockets = createSockets(holder, { node, channel, leaveFor, onError })
  const resumes = createResume(holder, { run, sockets, look, mayHaveSocket, windowMs: options.resumeWindowMs, onError })

  /** Runs a script over the session's slot; undefined for what is no session id. */
  async function run(name: ScriptName, id: string, args: readonly (string | number)[], log = false) {
    const tag = tagOfSessionId(id)
    if (tag === undefined) return undefined
    const base = `rw:{${tag}}:`
    const keys = log ? [`${base}s:${id}`, `${base}l:${id}`] : [`${base}s:${id}`]
    return store.run(name, keys, [base, node, now, options.windowMs, longestMs, ...args])
  }

  function runFor(name: ScriptName, participant: Participant, args: readonly (string | number)[]): Promise<Reply> {
    const hash = participantHash(participant)
    const base = `rw:{${tagOfHash(hash)}}:`
    const head = [base, node, now, options.windowMs, longestMs, hash]
    return store.run(name, [`${base}a:${hash}`, `${base}d:${hash}`], [...head, ...args])
  }

  async function append(id: string, push: Push, isRetry = false): Promise<AppendResult> {
    const args = appendArgs(id, push)
    const epoch = held.get(id)?.epoch
    let [result = 'gone', seq, socket, ...messages] = (await run('append', id, args, true)) ?? []
    if (result === 'keep') {
      ;[result = 'gone', ...messages] = (await run('keep', id, args, true)) ?? []
    }
    const session = held.get(id)
    if (result === 'gone' && session !== undefined && !isRetry) {
      await beginAgain(session)
      return append(id, push, true)
    }
    if (messages.length > 0) hearAll(messages)
    if (result === 'sent' && session !== undefined && session.socket === socket) {
      if (session.epoch === epoch) take(session, heardOf(Number(seq), push))
      // It began again meanwhile: the seq may be of the log before.
      else compare(session).catch(onError)
    }
    return result as AppendResult
  }

  /** An append that cannot be one while the store is away: who has its socket here gets it all the same [EXT3]. */
  async function appendOrHand(id: string, push: Push): Promise<AppendResult> {
    try {
      return await append(id, push)
    } catch (error) {
      const session = held.get(id)
      const isAway = error instanceof StoreError && error.kind === 'unavailable'
      if (!isAway || !isRelay(push) || session?.ready !== true || !isHeard(push)) throw error
      if (push.kind === 'media' && !session.identity.extended) return 'dropped'
      session.sink.send(push.text)
      return 'volatile'
    }
  }

  /** Who asked for a push, and cannot be told that it may be lost, asks again: it would arrive twice. */
  function isHeard({ source }: Push): boolean {
    return source === undefined || held.get(source.sessionId)?.sink.isClosed === false
  }

  /** Sessions with a socket; one that a dead node held has none, though nobody has said so. */
  async function live(participant: Participant, ...wanted: string[]): Promise<readonly Live[]> {
    const [count = 0, ...rest] = await runFor('live', participant, wanted)
    const found = rest.slice(0, Number(count)) as string[]
    hearAll(rest.slice(Number(count)))
    const alive: Live[] = []
    for (let i = 0; i < found.length; i += 7) {
      const [id = '', holder = '', socket = '', device = '', extended, openedAt, version = ''] = found.slice(i, i + 7)
      if (holder === node || (await channel.isThere(holder))) {
        alive.push({ id, device, extended: extended === '1', openedAt: Number(openedAt), version })
      } else await leaveFor(id, socket)
    }
    return alive
  }

  /** False where there is no such session. */
  async function touch(
    id: string,
    what: 'prove' | 'ring' | 'hold' | 'release' | 'renew',
    ...args: (string | number)[]
  ): Promise<boolean> {
    const all = [id, what, ...args]
    const [found, ...messages] = (await run('touch', id, all)) ?? []
    hearAll(messages)
    const session = held.get(id)
    if (found !== 0 || session === undefined) return found === 1
    // The store lost it, and its socket is here.
    await beginAgain(session)
    const [again, ...more] = (await run('touch', id, all)) ?? []
    hearAll(more)
    return again === 1
  }

  async function look(id: string, comesBack?: SessionIdentity): Promise<Found | undefined> {
    const who = comesBack === undefined ? [] : [participantHash(comesBack.participant), deviceField(comesBack)]
    const reply = (await run('look', id, [id, ...who])) ?? []
    if (reply.length === 0) return undefined
    hearAll(reply.slice(12))
    const [holder = '', socket = '', lastHolder = '', lastSocket = '', hash = '', device = ''] = reply.map(String)
    const [extended, holds, rings, turn, given, closed] = reply.slice(6)
    const owner = { hash, device, extended: extended === '1' }
    const turns = { turn: Number(turn), given: given === '' ? undefined : Number(given) }
    return {
      holder,
      socket,
      lastHolder,
      lastSocket,
      ...owner,
      holds: holds === 1,
      rings: rings === 1,
      closed: closed === 1,
      ...turns,
    }
  }

  /** What its client asked for, for the node on which it comes back [EXT4]. */
  async function park({ identity, socket, upstream }: LastSocket | Held): Promise<void> {
    if (!identity.extended) return
    await run('park', identity.sessionId, [identity.sessionId, socket, JSON.stringify(upstream), upstream.dropped])
  }

  const sessions: Sessions = {
    async open(identity, sink, at) {
      const socket = newSocket()
      const opened = run('open', identity.sessionId, openArgs(identity, socket, at))
      const [epoch = '', ...messages] = (await opened.catch(mayHaveSocket(identity.sessionId, socket, '1'))) ?? []
      hearAll(messages)
      const session = createHeld(identity, socket, sink, String(epoch), newUpstream(), at)
      held.set(identity.sessionId, session)
      return { epoch: session.epoch, upstream: session.upstream }
    },
    ...resumes,
    async ready(id, sink) {
      const session = held.get(id)
      if (session === undefined || (sink !== undefined && session.sink !== sink)) return
      session.opened = true
      await handOut(session)
    },
    async reset(id, epoch, text) {
      const session = held.get(id)
      if (session === undefined || session.epoch !== epoch) return
      // Told already where what came after it could not be handed out: the store went away in between.
      if (session.due !== undefined) session.due.text = text
      if (session.opened) await handOut(session)
    },
    async openDetached(identity, at) {
      now = Math.max(now, at)
      hearAll((await run('open', identity.sessionId, openArgs(identity, '', at)))?.slice(1))
    },
    async detach(id, sink, clean, at, closed = clean) {
      const session = held.get(id)
      if (session === undefined || session.sink !== sink) return false
      now = at
      session.closed = closed
      giveUp(session)
      return departures.leave(departureOf(session, clean, at))
    },
    async wasClosed(id, at) {
      const own = at === node ? last.get(id) : undefined
      return own?.closed ?? (await look(id))?.closed ?? false
    },
    async hasMoved(id, sink) {
      const here = held.get(id)
      if (here !== undefined && here.sink !== sink) return true
      const found = await look(id)
      if (found === undefined || found.socket === here?.socket) return false
      if (here !== undefined) holder.moved(here, found.socket !== '')
      return here !== undefined || found.socket !== ''
    },
    heldHere: (id) => held.get(id)?.identity,
    async sinkOf(id, at = node) {
      const here = held.get(id)
      if (here !== undefined) return here.sink
      const found = await look(id)
      if (found !== undefined) return sockets.at(found.holder, id, found.socket)
      return at === node ? undefined : sockets.at(at, id, anySocket)
    },
    liveOf: async (participant, at = newest, began = 0) =>
      (await live(participant, 'all', String(at), String(began))).map(({ id }) => id),
    seen: async (participant) =>
      (await live(participant, 'all', String(newest), '0')).map(({ id, device, extended, openedAt, version }) => ({
        sessionId: id,
        deviceId: deviceOf(device),
        extended,
        openedAt,
        appVersion: version === '' ? null : version,
      })),
    async renew(id, expiresAt) {
      const session = held.get(id)
      if (session === undefined) return
      session.identity = { ...session.identity, expiresAt }
      await touch(id, 'renew', expiresAt)
    },
    append: appendOrHand,
    async appendRung(participant, push, except) {
      hearAll(await runFor('rung', participant, [push.kind, nameOf(push), push.version ?? '', push.text, ...except]))
    },
    async ring(id, call) {
      await touch(id, 'ring', nameOf({ call }))
    },
    async prove(id, seq) {
      try {
        await touch(id, 'prove', Number.isSafeInteger(seq) ? seq : 0)
      } catch (error) {
        // It proves less than it could; the next pong proves as much again.
        if (!(error instanceof StoreError)) throw error
      }
    },
    async keep(id, push) {
      const args = [id, nameOf(push), push.text, push.source?.n ?? '']
      const [result = 'gone', ...messages] = (await run('wait', id, args)) ?? []
      hearAll(messages)
      const session = held.get(id)
      if (result !== 'gone' || session === undefined) return result as KeepResult
      await beginAgain(session)
      return held.has(id) ? sessions.keep(id, push) : 'gone'
    },
    async takeKept(id, call) {
      const [elements, ...messages] = (await run('take', id, [id, nameOf({ call })])) ?? []
      if (!Array.isArray(elements)) return []
      hearAll(messages)
      return keptOf(call, elements as unknown as string[])
    },
    hold: (id, call, settled, gate = false, version = newest) =>
      touch(id, 'hold', nameOf({ call }), settled ? '1' : '0', gate ? '1' : '0', version),
    async openGate(id, call, first) {
      const entries = first.flatMap(({ source, text }) => [source?.sessionId ?? '', source?.n ?? '', text])
      hearAll(await run('gate', id, [id, nameOf({ call }), ...entries]))
    },
    async release(id, call) {
      await touch(id, 'release', nameOf({ call }))
    },
    knowsEnd: (id, call) => held.get(id)?.finished.has(nameOf({ call })) ?? false,
    async holdsAny(id) {
      const session = held.get(id)
      return session === undefined ? ((await look(id))?.holds ?? false) : session.places.size > 0
    },
    async inCall(id) {
      const session = held.get(id)
      if (session !== undefined) return session.places.size > 0 || session.ringing.size > 0
      const found = await look(id)
      return found !== undefined && (found.holds || found.rings)
    },
    async move(call, from, to, settled, version = newest, gate = false) {
      if (from === to) return true
      if (tagOfSessionId(from) !== tagOfSessionId(to)) return false
      const how = [settled ? '1' : '0', version, gate ? '1' : '0']
      const [found = 0, ...messages] = (await run('move', from, [nameOf({ call }), from, to, ...how])) ?? []
      hearAll(messages)
      return found === 1
    },
    toldOf: told.toldOf,
    toldExactly: told.toldExactly,
    tellAll: told.tellAll,
    setTold: told.setTold,
    owing: async (identity) =>
      (await live(identity.participant, 'owing', deviceField(identity), identity.sessionId)).map(({ id }) => id),
    async collectFinals(identity) {
      hearAll(await run('collect', identity.sessionId, [identity.sessionId, deviceField(identity)]))
    },
    sweep(at) {
      now = at
      for (const [id, before] of last) if (at - before.at > 2 * longestMs) last.delete(id)
    },
  }

  /** Hands over what waited until its client was told who it is, and of a loss [ORD3, RES4]. */
  async function handOut(session: Held): Promise<void> {
    if (session.ready || !tellReset(session)) return
    const id = session.identity.sessionId
    const { epoch } = session
    const [result, head, entries, ...messages] = (await run('ready', id, [id, session.socket])) ?? []
    // It began again meanwhile: the answer is about the log before.
    if (session.epoch !== epoch) return handOut(session)
    if (result === 'trimmed') session.sink.close(1013, 'try again later')
    if (result === 'was') {
      session.ready = true
      return compare(session)
    }
    if (result !== 'ready') {
      hearAll([head, entries, ...messages].filter((message) => typeof message === 'string'))
      if (result !== 'gone') return
      await compare(session)
      return held.get(id) === session ? handOut(session) : undefined
    }
    session.ready = true
    hearAll(messages)
    offerAll(session, entries as Entry[], Number(head))
    holder.catchUp(session)
  }

  return {
    sessions,
    tell(call) {
      const others = new Set([placeOf(call, 'caller')?.node ?? node, placeOf(call, 'callee')?.node ?? node])
      others.delete(node)
      for (const other of others) channel.tell(other, call)
    },
    isGone: channel.isGone,
    isReady: () => channel.awayMs() < readyMs,
    async start() {
      await store.ready()
      await channel.start()
      comparing = setInterval(() => {
        comparisons++
        if (isComparing) return
        isComparing = true
        void departures
          .tellLeft()
          .then(() => holder.compareHeads(comparisons % compareAllEvery === 0))
          .catch(onError)
          .finally(() => {
            isComparing = false
          })
      }, compareMs)
    },
    compareHeads: () => holder.compareHeads(true),
    async settled() {
      // On a busy machine its own word may come too late to count: the next one says the same.
      for (let round = 1; !(await channel.heard()); round++)
        if (round === settleRounds) throw new Error(`node ${node} has not heard what it was told`)
      await holder.idle()
    },
    async close() {
      clearInterval(comparing)
      await Promise.all([...held.values(), ...last.values()].map(park)).catch(onError)
      await channel.close()
      store.close()
    },
  }
}

function departureOf(session: Held, isClean: boolean, at: number): Departure {
  const { identity, socket, sink, delivered, epoch, closed } = session
  const clean = isClean ? '1' : closed ? '2' : '0'
  // What it was handed in its last moment may not have been written.
  return {
    sessionId: identity.sessionId,
    socket,
    clean,
    at,
    sent: Math.min(delivered, sink.writtenSeq),
    epoch,
    session,
  }
}

function appendArgs(id: string, push: Push): (string | number)[] {
  const { source } = push
  const of = [source?.sessionId ?? '', source?.n ?? '', push.forPlace === true ? '1' : '0']
  return [push.kind, nameOf(push), push.version ?? '', push.text, id, ...of]
}

function heardOf(seq: number, push: Push): Heard {
  const { kind, version, text } = push
  return { seq, kind, call: nameOf(push), version: version === undefined ? '' : String(version), text }
}

/** What waits for the accept is stored as its text. */
function kindOfKept(text: string): 'relay' | 'media' {
  return text.startsWith('{"event":"call.media"') ? 'media' : 'relay'
}

function keptOf(call: string, elements: readonly string[]): Push[] {
  const pushes: Push[] = []
  for (let i = 0; i < elements.length; i += 3) {
    const [sessionId = '', n, text = ''] = elements.slice(i, i + 3)
    pushes.push({ kind: kindOfKept(text), call, version: undefined, text, source: { sessionId, n: Number(n) } })
  }
  return pushes
}
