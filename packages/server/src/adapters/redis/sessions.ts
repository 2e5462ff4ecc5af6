import { randomBytes } from 'node:crypto'
import type { Participant } from '../../call/call.ts'
import type { AppendResult, AsyncSessions, Push, SessionIdentity, Sink, Upstream } from '../../ports.ts'
import { StoreError } from '../../ports.ts'
import { participantHash, tagOfHash, tagOfSessionId } from '../../session-id.ts'
import { type Channel, createChannel, type Request } from './channel.ts'
import { createStore, type Entry, type Reply, type ScriptName } from './connection.ts'
import { callFields, createHeld, type Held, learnCalls, loseLog, nameOf, offer, offerAll, versionOf } from './held.ts'

export interface RedisSessionsOptions {
  readonly url: string
  /** Names this run of this node: no other has had the name. */
  readonly node: string
  /** How long final notices are worth telling, in ms [WS4]. */
  readonly windowMs: number
  /** How long an extended session can be resumed, in ms [RES1]. */
  readonly resumeWindowMs: number
  /** The log of a session was lost while its socket is open [RES4]. */
  readonly onLogLost: (identity: SessionIdentity, epoch: string) => void
  readonly onError: (error: unknown) => void
}

export interface RedisSessions {
  readonly sessions: AsyncSessions
  start(): Promise<void>
  /** Reads what the sockets of this node have missed, and finds logs that were lost. */
  compareHeads(): Promise<void>
  /** Resolves when everything that was appended before has been handed to the sockets of this node. */
  settled(): Promise<void>
  /** Hands over what other nodes need to go on with the sessions of this one. */
  close(): Promise<void>
}

/** A socket that this node held last of a session, or holds. */
type LastSocket = Pick<Held, 'socket' | 'sink' | 'upstream' | 'identity'> & { readonly at: number }

/** Heads of sessions in calls, and of all others, are compared so often, in ms. */
const compareMs = 5_000
const compareAllEvery = 12

/** The sessions of all nodes, in Redis; this node holds the sockets of some. */
export function createRedisSessions(options: RedisSessionsOptions): RedisSessions {
  const { node, onError } = options
  const held = new Map<string, Held>()
  const last = new Map<string, LastSocket>()
  const remotes = new Map<string, Sink>()
  const reads = new Set<Promise<void>>()
  const store = createStore(options.url, onError)
  const longestMs = Math.max(options.windowMs, options.resumeWindowMs)
  /** The time, as whoever uses this last said. */
  let now = 0
  let comparing: Timer | undefined
  let comparisons = 0
  const channel: Channel = createChannel({
    url: options.url,
    store,
    node,
    onNews: hear,
    onRequest: answer,
    onRebuilt: () => void compareHeads().catch(onError),
    onError,
  })

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

  function hearAll(messages: Reply | undefined): void {
    for (const message of messages ?? []) hear(String(message))
  }

  function hear(message: string): void {
    const lineEnd = message.indexOf('\n')
    const [what, id = '', socket, ...rest] = (lineEnd < 0 ? message : message.slice(0, lineEnd)).split(' ')
    const session = held.get(id)
    if (session === undefined || session.socket !== socket) return
    const [first = '', call = ''] = rest
    if (what === 'E') take(session, Number(first), versionOf(rest[2]), message.slice(lineEnd + 1))
    else if (what === 'L') lost(session, first)
    else if (what === 'X') giveUp(session)
    else if (what === 'R' && first === '1') session.ringing.add(call)
    else if (what === 'R') session.ringing.delete(call)
    else if (what === 'P' && first !== '-') session.places.set(call, first === '1')
    else if (what === 'P') {
      session.places.delete(call)
      session.ringing.delete(call)
    }
  }

  function take(session: Held, seq: number, version: number | undefined, text: string): void {
    if (offer(session, seq, version, text)) read(session)
  }

  /** Reads what came before something that was heard of. */
  function read(session: Held): void {
    if (session.reading || !session.ready) return
    session.reading = true
    const reading = readOn(session)
      .catch(onError)
      .finally(() => reads.delete(reading))
    reads.add(reading)
  }

  async function readOn(session: Held): Promise<void> {
    const id = session.identity.sessionId
    try {
      do {
        const reply = (await run('read', id, [id, session.socket, session.delivered])) ?? []
        const [epoch, head, entries, ...messages] = reply
        if (epoch === 'gone') return void compare(session).catch(onError)
        hearAll(messages)
        if (epoch === session.epoch) offerAll(session, entries as Entry[], Number(head))
      } while (session.head > session.delivered && held.get(id) === session)
    } finally {
      // In the same step as the last look at `head`: whatever comes later begins another read.
      session.reading = false
    }
  }

  /** The socket is another's by now. */
  function giveUp(session: Held): void {
    const id = session.identity.sessionId
    if (held.get(id) !== session) return
    held.delete(id)
    last.set(id, { ...session, at: now })
  }

  function lost(session: Held, epoch: string): void {
    if (session.epoch === epoch) return
    loseLog(session, epoch)
    if (session.identity.extended) options.onLogLost(session.identity, epoch)
    read(session)
  }

  function openArgs(identity: SessionIdentity, socket: string, at: number) {
    const { sessionId, participant, extended } = identity
    const hash = participantHash(participant)
    if (tagOfSessionId(sessionId) !== tagOfHash(hash)) throw new Error('a session id that is not its participant’s')
    const nonce = randomBytes(8).toString('base64url')
    return [sessionId, hash, deviceField(identity), extended ? '1' : '0', socket, nonce, at]
  }

  /** The store lost the log of a session with a socket: it begins again, with what is known here [RES4]. */
  async function beginAgain(session: Held): Promise<void> {
    const fields = ['rd', session.ready ? '1' : '0', ...callFields(session)]
    const id = session.identity.sessionId
    const [epoch = '', ...messages] =
      (await run('open', id, [...openArgs(session.identity, session.socket, now), ...fields])) ?? []
    hearAll(messages)
    if (epoch === '') giveUp(session)
    else lost(session, String(epoch))
  }

  async function compare(session: Held): Promise<void> {
    const id = session.identity.sessionId
    const [epoch, head, ...messages] = (await run('head', id, [id, session.socket, session.delivered])) ?? []
    if (held.get(id) !== session) return
    if (epoch === 'gone') return beginAgain(session)
    if (epoch === 'taken') return giveUp(session)
    hearAll(messages)
    lost(session, String(epoch))
    session.head = Math.max(session.head, Number(head))
    if (session.ready && session.head > session.delivered) read(session)
  }

  async function compareHeads(all = true): Promise<void> {
    const chosen = [...held.values()].filter(({ places, ringing }) => all || places.size > 0 || ringing.size > 0)
    // In parts: other commands go in between.
    for (let i = 0; i < chosen.length; i += 100) await Promise.all(chosen.slice(i, i + 100).map(compare))
  }

  async function append(id: string, push: Push, isRetry = false): Promise<AppendResult> {
    const args = [push.kind, nameOf(push), push.version ?? '', push.text, id]
    const [result = 'gone', seq, socket, ...messages] = (await run('append', id, args, true)) ?? []
    const session = held.get(id)
    if (result === 'gone' && session !== undefined && !isRetry) {
      await beginAgain(session)
      return append(id, push, true)
    }
    if (result === 'keep') {
      const [kept = 'gone', ...news] = (await run('keep', id, args, true)) ?? []
      hearAll(news)
      return kept as AppendResult
    }
    if (messages.length > 0) hearAll(messages)
    if (result === 'sent' && session !== undefined && session.socket === socket) {
      take(session, Number(seq), push.version, push.text)
    }
    return result as AppendResult
  }

  /** Sessions with a socket; one that a dead node held has none, though nobody has said so. */
  async function live(participant: Participant, ...wanted: string[]): Promise<string[]> {
    const [count = 0, ...rest] = await runFor('live', participant, wanted)
    const found = rest.slice(0, Number(count)) as string[]
    hearAll(rest.slice(Number(count)))
    return found.filter((_, i) => i % 2 === 0 && (found[i + 1] === node || channel.isAlive(found[i + 1] ?? '')))
  }

  async function touch(id: string, what: 'prove' | 'ring' | 'hold' | 'release', ...args: (string | number)[]) {
    hearAll(await run('touch', id, [id, what, ...args]))
  }

  async function look(id: string) {
    const [holder, socket, lastHolder, lastSocket, hash, device, holds, rings, ...messages] =
      (await run('look', id, [id])) ?? []
    if (holder === undefined) return undefined
    hearAll(messages)
    const names = { holder: String(holder), socket: String(socket), lastHolder: String(lastHolder) }
    return { ...names, lastSocket: String(lastSocket), hash, device, holds: holds === 1, rings: rings === 1 }
  }

  function sinkAt(holder: string, id: string, socket: string): Sink | undefined {
    if (socket === '') return undefined
    if (holder !== node) return remote(holder, id, socket)
    const here = held.get(id)
    if (here?.socket === socket) return here.sink
    const before = last.get(id)
    return before?.socket === socket ? before.sink : undefined
  }

  /** A socket that another node holds; the same object for the same socket. */
  function remote(holder: string, id: string, socket: string): Sink {
    const known = remotes.get(socket)
    if (known !== undefined) return known
    const sink: Sink = {
      send: () => {},
      pushed: () => {},
      // Where the node is alive and busy, the holder counts as there: a held place is never taken [PLACE3].
      probe: async () =>
        ((await channel.ask(holder, 'probe', id, socket)) ?? (channel.isAlive(holder) ? '1' : '0')) === '1',
      close: (code, reason) => void channel.ask(holder, 'close', id, socket, `${code} ${reason}`).catch(onError),
      retire: async () => {
        if ((await channel.ask(holder, 'retire', id, socket)) !== undefined || !channel.isAlive(holder)) return
        throw new StoreError('unavailable', 'the node that holds the socket does not answer')
      },
    }
    if (remotes.size >= 1_000) for (const oldest of [...remotes.keys()].slice(0, 500)) remotes.delete(oldest)
    remotes.set(socket, sink)
    return sink
  }

  /** Another node asks about a socket of this one. */
  async function answer(op: Request, id: string, socket: string, rest: string): Promise<string> {
    const here = [held.get(id), last.get(id)].find((each) => each?.socket === socket)
    if (here === undefined) return '0'
    if (op === 'probe') return (await here.sink.probe()) ? '1' : '0'
    if (op === 'close') {
      const [code, ...reason] = rest.split(' ')
      here.sink.close(Number(code) as Parameters<Sink['close']>[0], reason.join(' '))
      return '1'
    }
    await here.sink.retire()
    await park(here)
    return '1'
  }

  /** What its client asked for, for the node on which it comes back [EXT4]. */
  async function park({ identity, socket, upstream }: LastSocket | Held): Promise<void> {
    if (!identity.extended) return
    await run('park', identity.sessionId, [identity.sessionId, socket, JSON.stringify(upstream), upstream.dropped])
  }

  const sessions: AsyncSessions = {
    async open(identity, sink) {
      const socket = newSocket()
      const [epoch = '', ...messages] = (await run('open', identity.sessionId, openArgs(identity, socket, 0))) ?? []
      hearAll(messages)
      const session = createHeld(identity, socket, sink, String(epoch), newUpstream())
      held.set(identity.sessionId, session)
      return { epoch: session.epoch, upstream: session.upstream }
    },
    async sinkToReplace(id, identity) {
      const found = await look(id)
      if (found === undefined || !isOwn(found, identity)) return undefined
      const isHeld = found.socket !== ''
      return sinkAt(isHeld ? found.holder : found.lastHolder, id, isHeld ? found.socket : found.lastSocket)
    },
    async resume({ sessionId, epoch, seq, replied }, identity, sink, at) {
      const socket = newSocket()
      const own = held.get(sessionId) ?? last.get(sessionId)
      const hash = participantHash(identity.participant)
      const seen = Number.isSafeInteger(seq) ? seq : -1
      const mine = [own?.socket ?? '', own?.upstream.dropped ?? 0]
      const args = [
        sessionId,
        hash,
        deviceField(identity),
        epoch,
        seen,
        replied ?? 0,
        socket,
        at,
        options.resumeWindowMs,
      ]
      const [found = '', ...rest] = (await run('resume', sessionId, [...args, ...mine])) ?? []
      if (found === '') {
        hearAll(rest)
        return undefined
      }
      const [stored, isOwnSocket, ...calls] = rest
      const upstream = isOwnSocket === 1 && own !== undefined ? own.upstream : readUpstream(String(stored))
      const session = createHeld({ ...identity, sessionId }, socket, sink, String(found), upstream)
      session.delivered = seen
      learnCalls(session, calls as string[])
      held.set(sessionId, session)
      last.delete(sessionId)
      return { epoch: session.epoch, upstream }
    },
    async ready(id) {
      const session = held.get(id)
      if (session === undefined || session.ready) return
      const [result, head, entries, ...messages] = (await run('ready', id, [id, session.socket])) ?? []
      if (result === 'trimmed') session.sink.close(1013, 'try again later')
      if (result !== 'ready') {
        hearAll([head, entries, ...messages].filter((message) => typeof message === 'string'))
        return result === 'gone' ? compare(session).then(() => sessions.ready(id)) : undefined
      }
      session.ready = true
      hearAll(messages)
      offerAll(session, entries as Entry[], Number(head))
      if (session.head > session.delivered) read(session)
    },
    async openDetached(identity, at) {
      now = Math.max(now, at)
      hearAll((await run('open', identity.sessionId, openArgs(identity, '', at)))?.slice(1))
    },
    async detach(id, sink, clean, at) {
      const session = held.get(id)
      if (session === undefined || session.sink !== sink) return false
      now = at
      const { socket, upstream } = session
      const args = [id, socket, clean ? '1' : '0', at, JSON.stringify(upstream), upstream.dropped]
      const [result = 0, ...messages] = (await run('detach', id, args)) ?? []
      if (result === -1) {
        await beginAgain(session)
        return sessions.detach(id, sink, clean, at)
      }
      giveUp(session)
      hearAll(messages)
      return result === 1
    },
    async sinkOf(id) {
      const here = held.get(id)
      if (here !== undefined) return here.sink
      const found = await look(id)
      return found === undefined ? undefined : sinkAt(found.holder, id, found.socket)
    },
    liveOf: (participant) => live(participant, 'all'),
    append: (id, push) => append(id, push),
    async appendRung(participant, push, except) {
      hearAll(await runFor('rung', participant, [push.kind, nameOf(push), push.version ?? '', push.text, ...except]))
    },
    ring: (id, call) => touch(id, 'ring', nameOf({ call })),
    prove: (id, seq) => touch(id, 'prove', Number.isSafeInteger(seq) ? seq : 0),
    hold: (id, call, settled) => touch(id, 'hold', nameOf({ call }), settled ? '1' : '0'),
    release: (id, call) => touch(id, 'release', nameOf({ call })),
    holdsAny: async (id) => (await look(id))?.holds ?? false,
    async inCall(id) {
      const found = await look(id)
      return found !== undefined && (found.holds || found.rings)
    },
    async move(call, from, to) {
      if (from === to || tagOfSessionId(from) !== tagOfSessionId(to)) return
      hearAll(await run('move', from, [nameOf({ call }), from, to]))
    },
    owing: (identity) => live(identity.participant, 'owing', deviceField(identity), identity.sessionId),
    async collectFinals(identity) {
      hearAll(await run('collect', identity.sessionId, [identity.sessionId, deviceField(identity)]))
    },
    sweep(at) {
      now = at
      for (const [id, before] of last) if (at - before.at > 2 * longestMs) last.delete(id)
    },
  }

  function isOwn(found: { hash: unknown; device: unknown }, identity: SessionIdentity): boolean {
    return found.hash === participantHash(identity.participant) && found.device === deviceField(identity)
  }

  return {
    sessions,
    async start() {
      await store.ready()
      await channel.start()
      comparing = setInterval(() => {
        comparisons++
        void compareHeads(comparisons % compareAllEvery === 0).catch(onError)
      }, compareMs)
    },
    compareHeads,
    async settled() {
      await channel.heard()
      while (reads.size > 0) await Promise.all(reads)
    },
    async close() {
      clearInterval(comparing)
      await Promise.all([...held.values(), ...last.values()].map(park)).catch(onError)
      await channel.close()
      store.close()
    },
  }
}

function newSocket(): string {
  return randomBytes(9).toString('base64url')
}

function newUpstream(): Upstream {
  return { handled: 0, replies: [], dropped: 0 }
}

function readUpstream(text: string): Upstream {
  return text === '' ? newUpstream() : JSON.parse(text)
}

/** A device as the store compares it: one without a name, one that is not known any more, or a name. */
function deviceField({ deviceId }: SessionIdentity): string {
  if (deviceId === undefined) return ''
  return deviceId === null ? 'n' : `s${deviceId}`
}
