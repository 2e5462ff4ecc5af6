import { type Call, callKey, placeOf } from '../call/call.ts'
import { callMark } from '../call/read.ts'
import type { Cancel, Timers } from '../ports/clock.ts'
import { andThen } from '../ports/maybe.ts'
import { forgetOldest } from '../ports/oldest.ts'
import { isRelay, type Push } from '../ports/push.ts'
import { tagOfSessionId } from '../ports/session-id.ts'
import type { Sessions, Sink } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import { callsOf, newestVersion, type Session, sinkOf, sinkToRetire } from '../session/session.ts'
import { createSessionTable } from '../session/table.ts'
import { createAround } from './around.ts'
import { createCompleteness } from './completeness.ts'
import type { Copies } from './copies.port.ts'
import type { Directory } from './directory.port.ts'
import { createBelievedDirectory } from './directory.ts'
import { type Frame, isRelayFrame, notHere, relayFrame } from './frames.ts'
import { createInbox } from './inbox.ts'
import { createLiving } from './living.ts'
import type { Operation, Operations } from './operations.ts'
import { changing, createOwner, pauseOf } from './owner.ts'
import type { Post } from './post.port.ts'
import { createRemoteSinks } from './remote-sinks.ts'
import { createRequests } from './requests.ts'
import { createResumes } from './resumes.ts'
import { createSaves } from './saves.ts'
import { createStuck, released } from './stuck.ts'

export interface ClusterOptions {
  readonly directory: Directory
  readonly copies: Copies
  readonly post: Post
  /** Names this run of this node: no other has had the name. */
  readonly node: string
  /** How long final notices are worth telling, in ms [WS4]. */
  readonly windowMs: number
  /** How long an extended session can be resumed, in ms [RES1]. */
  readonly resumeWindowMs: number
  /** Whether a node is known for sure not to serve any more; where it is not given, what the store says counts alone. */
  readonly isDead?: (node: string) => boolean
  /** More nodes that are known to own sessions than say in the store that they live. */
  readonly owners?: () => readonly string[]
  /** What another node has just committed to a call. */
  readonly onCall?: (call: Call) => void
  /** It has told everybody of a call up to this version. */
  readonly onTold?: (call: string, version: number) => void
  /** A node leaves a question unanswered; told again and again as long as that is so. */
  readonly onWaiting?: (node: string) => void
  readonly onError: (error: unknown) => void
  /** How long a node may take to hear what it is told, in ms; tests do not wait for it. */
  readonly heardMs?: number
  readonly timers: Timers
  /** Names a log: no other has had the name [RES2]. */
  readonly newEpoch: () => string
}

export interface Cluster {
  readonly sessions: Sessions
  /**
   * Resolves when everything that has changed until now is saved: nobody is to be told of it before, but a base session of
   * what its peer sends. Undefined where there is nothing to wait for.
   */
  save(): Promise<void> | undefined
  /** See `Nodes`. */
  tell(call: Call): void
  told(call: Call): void
  /** Whether a node is known for sure not to say here that it lives, though it could. */
  isGone(node: string): boolean
  /** Whether a node said here lately that it lives. */
  saysItLives(node: string): boolean
  /** Looks at once who does. */
  lookForNodes(): Promise<void>
  /** Those that said so lately. */
  knownNodes(): Iterable<string>
  /** The process of a node was found dead. */
  fell(node: string): void
  /** Others may take this node for dead, until `isOver`. */
  doubt(isOver: boolean): void
  /** Whether the last save succeeded: else who comes now is asked to come later. */
  canSave(): boolean
  /** Whether this node could say here just now that it lives. */
  isReady(): boolean
  /** Answers whether sessions of before this start may be known there. */
  start(): Promise<boolean>
  /** Looks at once who lives, and whether the store still has what this node wrote. */
  look(): Promise<void>
  /** Resolves when everything that was sent to this node before is done and saved; rejects where it hears nothing for half a minute. */
  settled(): Promise<void>
  /** Hands over what other nodes need to go on with the sessions of this one. */
  close(): Promise<void>
}

/** A beat a second, and the way of one. */
const readyMs = 2_000
/** Sessions with a socket are remembered for three times as long. */
const renewMs = 1_200_000
/** What was evicted, or lost with one master of several, is written again within this time. */
const checkMs = 20_000
/** A look at what was lost that could not be had is tried again so much later, in ms. */
const renewAgainMs = 1_000
/** Calls of which something has to be told once more. */
const mostDoubted = 20_000
/** Each waits for 3 s. */
const settleRounds = 10
const mostTries = 8
/** Longer than it takes to know that a node is dead. In ms. */
const repeatMs = 8_000

const away = () => new StoreError('unavailable', 'Redis is away')

/** The sessions of all nodes: each is in the memory of its owner, and what another one needs to go on with it is in Redis. */
export function createCluster(options: ClusterOptions): Cluster {
  const { node, copies, post, onError, windowMs, resumeWindowMs, timers, newEpoch } = options
  const table = createSessionTable({ windowMs, resumeWindowMs, newEpoch, isShared: true, onChanged: saveSoon })
  const directory = createBelievedDirectory(options.directory, (...how) => completeness.isWhole(...how), timers)
  const longestMs = Math.max(windowMs, resumeWindowMs)
  const saves = createSaves({ copies, table, longestMs, onRefused: refused, onError, timers })
  const living = createLiving({
    post,
    node,
    onSilent: (other) => inbox.giveUp(other),
    onDoubted,
    onError,
    timers,
  })
  const others = () => [...living.known(), ...(options.owners?.() ?? [])]
  const completeness = createCompleteness({
    ...{ directory: options.directory, node, others, onError, timers },
    // Where nobody can look, what was seen last counts.
    isDead: (other) => isStillDead(other).catch(() => isDead(other)),
    onForgotten: writeAgain,
    onGivenUp: giveUp,
    onMissing: () => {
      for (const other of living.known()) if (other !== node) inbox.tell(other, ['look'])
    },
  })
  const isDead = (other: string) =>
    living.isReplaced(other) || (!living.saysItLives(other) && (options.isDead?.(other) ?? living.isGone(other)))
  /** A node that stood still goes on in a moment, and owns what comes to it from then on. */
  const isStillDead = async (other: string) => isDead(other) && living.look().then(() => isDead(other))
  const inbox = createInbox({
    post,
    node,
    onFrame: (frame, from) => requests.answer(frame, from),
    saved: saves.save,
    onRefused: (frame, answer) => requests.answerOfRefused(frame, answer),
    isSilent: (other) => living.isSilent(other),
    onWaiting: options.onWaiting ?? (() => {}),
    onStall: saves.renew,
    onError,
    heardMs: options.heardMs,
    timers,
  })
  const onTaken = (from: string) => inbox.tell(from, ['taken'])
  const owner = createOwner({
    node,
    table,
    directory,
    saves,
    ask: inbox.ask,
    isDead,
    isStillDead,
    living,
    onTaken,
    timers,
  })
  /** Calls of which something was told to a session that another node had by then. */
  const doubted = new Map<string, true>()
  const untilTold = createStuck()
  const untilNews = createStuck()
  const remoteSink = createRemoteSinks(inbox, living, onError, timers)
  const resumes = createResumes({ table, owner, registered })
  const around = createAround({
    ...{ node, table, directory, owner, inbox, living, timers },
    append: (...how) => sessions.append(...how),
    settle: saves.settle,
    onRefused: refused,
  })
  const requests = createRequests({
    ...{ node, table, owner, around },
    onCall(call) {
      options.onCall?.(call)
      untilNews.release(callKey(call))
    },
    onTold(call, version) {
      untilTold.release(call)
      options.onTold?.(call, version)
    },
    onTaken: onDoubted,
    onLook: () => void look().catch(onSaveFailed),
  })
  const { doHere } = requests
  let cancels: readonly Cancel[] = []
  let isChecking = false
  let isDoubted = false
  let isRenewing = false

  /** At the end of this turn of the event loop, whether somebody waits for it or not. */
  function saveSoon(): void {
    timers.turn(() => {
      saves.save()?.catch(onSaveFailed)
    })
  }

  /** It is tried again; that the store is away is told of by its connection. */
  function onSaveFailed(error: unknown): void {
    if (!(error instanceof StoreError)) onError(error)
  }

  async function check(): Promise<void> {
    if (isChecking || saves.isAway) return
    isChecking = true
    await saves.check().catch(onSaveFailed)
    isChecking = false
  }

  /** Whoever is just telling of its calls tells once more: it has another owner by now. */
  function doubt(session: Session): void {
    for (const call of callsOf(session)) doubted.set(call, true)
    forgetOldest(doubted, mostDoubted)
  }

  /** Somebody else has it: what this node has of it, or said to it, is worth nothing. */
  function refused(session: Session, hasSocket: boolean): void {
    doubt(session)
    if (table.get(session.identity.sessionId) !== session) return
    table.drop(session.identity.sessionId)
    const sink = sinkOf(session)
    // At once: what it was told has the number of something else there.
    if (hasSocket) sink?.close(4409, 'replaced by a newer connection')
    else sink?.close(1013, 'try again later', 'its node was taken for dead')
    // What it asked for and has no reply to is asked again there, in order [EXT4] [ORD2].
    if (session.identity.extended) void sinkToRetire(session)?.retire()
  }

  async function writeAgain(isOf: (sessionId: string) => boolean): Promise<void> {
    post.readAgain()
    for (const session of table.all())
      if (session.saving.isSaved && isOf(session.identity.sessionId)) table.changes.tear(session)
    await saves.settle()
  }

  /** Nobody could tell them what came meanwhile: their clients begin again. */
  async function giveUp(isOf: (sessionId: string) => boolean): Promise<void> {
    for (const session of [...table.all()]) {
      const { sessionId } = session.identity
      if (!isOf(sessionId)) continue
      doubt(session)
      sinkOf(session)?.close(1013, 'try again later', 'its node was taken for dead')
      table.forget(sessionId)
    }
    await saves.settle()
  }

  /** Others may have taken what this node owns: it could not say for a while that it lives. */
  function onDoubted(): void {
    isDoubted = true
    if (!isRenewing) void renew()
  }

  async function renew(): Promise<void> {
    isRenewing = true
    while (isDoubted) {
      isDoubted = false
      await saves.renew().catch((error) => {
        onSaveFailed(error)
        // What was not asked is asked once the store answers again.
        timers.after(renewAgainMs, onDoubted)
      })
    }
    isRenewing = false
  }

  async function look(): Promise<void> {
    await living.beat()
    await completeness.look()
  }

  /** Does something with a session where its owner is; where there is none, as with one that nobody knows. */
  function run<O extends Operation>(
    operation: O,
    id: string,
    ...args: Parameters<Operations[O]> extends [string, ...infer Rest] ? Rest : never
  ): ReturnType<Operations[O]> | Promise<ReturnType<Operations[O]>> {
    type Result = ReturnType<Operations[O]>
    if (owner.isHere(id)) return doHere(operation, id, args) as Result
    return runAway(operation, id, args) as Promise<Result>
  }

  async function runAway(operation: Operation, id: string, args: readonly unknown[]): Promise<unknown> {
    if (tagOfSessionId(id) === undefined) return doHere(operation, id, args)
    const relay = operation === 'append' ? relayFrame(id, args[0] as Push) : undefined
    const frame = relay ?? (['do', operation, id, args] as const)
    const until = timers.monotonic() + repeatMs
    for (let tries = 0; tries < mostTries; tries++) {
      // Mostly known: a relay goes out in the turn in which it came.
      const at = owner.routeOf(id) ?? (await owner.ownerOf(id))
      if (at === undefined || at === node) return doHere(operation, id, args)
      const answer = await askOwner(at, frame, callIn(operation, args)).catch((error) => {
        owner.forgetRoute(id)
        // Its session's owner may have died with it, and who owns that session now knows whether it did [EXT4].
        if (relay !== undefined && timers.monotonic() < until) return notHere
        throw error
      })
      if (answer !== notHere) return answer
      owner.forgetRoute(id)
      await timers.sleep(pauseOf(tries))
    }
    throw changing()
  }

  /**
   * A silent node may not answer in time, and the session may get another owner first. A relay looks for that owner once a
   * step of its call has been told. Everything else fails as soon as the call has a new step, which delivers it again.
   */
  async function askOwner(at: string, frame: Frame, call: string | undefined): Promise<unknown> {
    const asked = inbox.ask(at, frame)
    if (call === undefined || !living.isSilent(at)) return asked
    const isRelay = isRelayFrame(frame)
    const answer = await (isRelay ? untilTold : untilNews).answerOr(call, asked)
    if (answer !== released) return answer
    if (isRelay) return notHere
    throw new StoreError('unknown', 'the node of the session is silent')
  }

  /** Others have to find the session before its client is told anything [ORD3]. */
  async function registered(id: string, sink: Sink, isNew: boolean): Promise<void> {
    try {
      await living.isSaid()
      await saves.settle()
    } catch (error) {
      table.detach(id, sink, isNew, table.now)
      throw error
    }
    if (table.sinkOf(id) !== sink) throw new StoreError('unavailable', 'the session was lost meanwhile')
  }

  const sessions: Sessions = {
    async open(identity, sink, at) {
      const open = table.open(identity, sink, at)
      await registered(identity.sessionId, sink, true)
      return open
    },
    ...resumes,
    ready: (id, sink) => table.ready(id, sink),
    async openDetached(identity, at) {
      const { sessionId } = identity
      if (owner.isHere(sessionId) || (await owner.ownerOf(sessionId)) !== undefined) return
      // It is saved with what it is told in this turn: if that was waited for here, an empty one could be swept away before.
      table.openDetached(identity, at)
    },
    async detach(...how) {
      const isGone = table.detach(...how)
      // Others look for who is there; where the store is away they learn it later.
      if (isGone) await saves.settle()?.catch(onSaveFailed)
      return isGone
    },
    hasHungUp: table.hasHungUp,
    async wasClosed(id) {
      const at = owner.isHere(id) || tagOfSessionId(id) === undefined ? node : await owner.ownerOf(id)
      // No answer would come in time, and whoever waits for this has come back elsewhere.
      return at !== undefined && at !== node && (await living.staysSilent(at)) ? false : run('wasClosed', id)
    },
    // The row says it beside the loss itself: who just came back elsewhere does not wait for the node that it left.
    async awaitedMs(id, at) {
      if (owner.isHere(id) || tagOfSessionId(id) === undefined) return table.awaitedMs(id, at)
      const row = await directory.row(id)
      const isElsewhere = row?.hasSocket === true && row.owner !== at && row.owner !== node
      return isElsewhere && (await living.isThere(row.owner)) ? 'back' : row?.awaitedMs
    },
    async hasMoved(id, sink) {
      const here = table.get(id)
      if (here?.socket.is === 'open' && here.socket.sink !== sink) return true
      const row = await directory.row(id)
      if (row === undefined || row.owner === node) return false
      if (here === undefined) return row.hasSocket
      refused(here, row.hasSocket)
      return true
    },
    heldHere: table.heldHere,
    unaware: table.unaware,
    async sinkOf(id, at = node) {
      if (owner.isHere(id)) return table.sinkOf(id)
      const row = tagOfSessionId(id) === undefined ? undefined : await directory.row(id)
      if (owner.isHere(id)) return table.sinkOf(id)
      if (row === undefined) return at === node ? undefined : remoteSink(at, id)
      return row.hasSocket && row.owner !== node ? remoteSink(row.owner, id) : undefined
    },
    liveOf: around.liveOf,
    appendLive: (...how) => (saves.isAway ? Promise.reject(away()) : around.appendLive(...how)),
    seen: around.seen,
    renew: table.renew,
    append(id, push, isLost = false) {
      if (isLost && !owner.isHere(id)) return owner.takeFromSilent(id).then(() => run('append', id, push))
      if (!saves.isAway || !owner.isHere(id)) return run('append', id, push)
      // Its client may go on at another node, which would know nothing of it.
      if (!isRelay(push)) return Promise.reject(away())
      // Who has its socket here gets it all the same; it is not safe against the death of this node [EXT3].
      const session = table.get(id)
      if (session?.socket.is !== 'open' || !session.socket.isReady) throw away()
      const result = table.append(id, push)
      return result === 'sent' ? 'volatile' : result
    },
    appendRung: (...how) => (saves.isAway ? Promise.reject(away()) : around.appendRung(...how)),
    ring: (id, call) => run('ring', id, call),
    prove: table.prove,
    acknowledge: table.acknowledge,
    doubt(id) {
      const rings = table.doubt(id)
      return rings.length === 0 ? rings : andThen(saves.settle(), () => rings)
    },
    trust: table.trust,
    keep: (id, push) => run('keep', id, push),
    takeKept: (id, call) => run('takeKept', id, call),
    hold(id, call, settled, gate = false, version = newestVersion, isLost = false) {
      const hold = () => run('hold', id, call, settled, gate, version)
      return isLost && !owner.isHere(id) ? owner.takeFromSilent(id).then(hold) : hold()
    },
    findAt: (id, at) => (at === node ? owner.isHere(id) : (inbox.ask(at, ['find', id]) as Promise<boolean>)),
    openGate: (id, call, first) => run('openGate', id, call, first),
    release: (id, call) => run('release', id, call),
    knowsEnd: table.knowsEnd,
    isIdle: table.isIdle,
    holdsAny: (id) => run('holdsAny', id),
    inCall: (id) => run('inCall', id),
    move(call, from, to, settled, version = newestVersion, gate = false, isLost = false) {
      if (from === to) return true
      if (owner.isHere(from) && owner.isHere(to)) return table.move(call, from, to, settled, version, gate)
      if (tagOfSessionId(from) !== tagOfSessionId(to)) return false
      return moveAway([call, from, to, settled, version, gate], isLost)
    },
    owing: around.owing,
    collectFinals: around.collectFinals,
    confirm(call) {
      const isSure = () => {
        if (doubted.delete(call)) throw new StoreError('unknown', 'a session of the call has another owner by now')
      }
      return andThen(saves.settle(), isSure)
    },
    sweep: (at) => table.sweep(at),
  }

  /**
   * `taken`: the owner is silent, and the session is this node's own now. It is not asked first: it may only stand still, and
   * loses no session that anybody is in, since the place was lost before.
   */
  async function parcelOf(from: string, call: string, version: number, isLost: boolean) {
    if (isLost && (await owner.takeFromSilent(from))) return 'taken'
    try {
      return await run('give', from, call, version)
    } catch (error) {
      // It fell silent meanwhile.
      if (error instanceof StoreError && isLost && (await owner.takeFromSilent(from))) return 'taken'
      throw error
    }
  }

  async function moveAway(move: Parameters<typeof table.move>, isLost: boolean): Promise<boolean> {
    const [call, from, to, settled, version = newestVersion, gate = false] = move
    for (let tries = 0; tries < mostTries; tries++) {
      const [source, target] = [await owner.ownerOf(from), await owner.ownerOf(to)]
      if (target === undefined) return false
      if (source === undefined) return true
      if (source !== target) {
        const parcel = await parcelOf(from, call, version, isLost)
        if (parcel === 'taken') continue
        if (parcel === undefined) return true
        // Until it is in the other session's log, it has to be in this one's.
        await saves.save()
        const isThere = await run('accept', to, call, parcel, { settled, version, gate })
        if (isThere) await run('gave', from, call)
        return isThere
      }
      const isOwn = owner.isHere(from) && owner.isHere(to)
      if (target === node && isOwn) return table.move(call, from, to, settled, version, gate)
      const moved =
        target === node ? notHere : await inbox.ask(target, ['move', call, from, to, settled, version, gate])
      if (moved !== notHere) return moved as boolean
      for (const id of [from, to]) owner.forgetRoute(id)
      await timers.sleep(pauseOf(tries))
    }
    throw changing()
  }

  /** Other nodes that have a place in a call. */
  function othersOf(call: Call): Set<string> {
    const others = new Set([placeOf(call, 'caller')?.node ?? node, placeOf(call, 'callee')?.node ?? node])
    others.delete(node)
    return others
  }

  return {
    sessions,
    save: saves.save,
    tell(call) {
      untilNews.release(callKey(call))
      for (const other of othersOf(call)) inbox.tell(other, ['call', callMark, call])
    },
    told(call) {
      untilTold.release(callKey(call))
      for (const other of othersOf(call)) inbox.tell(other, ['told', callKey(call), call.version])
    },
    isGone: living.isGone,
    saysItLives: living.saysItLives,
    lookForNodes: living.look,
    knownNodes: living.known,
    fell: living.fell,
    doubt: living.doubt,
    canSave: () => !saves.isAway,
    isReady: () => living.awayMs() < readyMs,
    async start() {
      saves.start()
      await inbox.start()
      const wasUsed = await completeness.start()
      await living.start()
      cancels = [
        timers.every(renewMs, () => void saves.renew().catch(onError)),
        timers.every(checkMs, () => void check()),
      ]
      return wasUsed
    },
    look,
    async settled() {
      for (let round = 1; !(await inbox.heard()); round++)
        if (round === settleRounds) throw new Error(`node ${node} has not heard what it was told`)
      await saves.save()
    },
    async close() {
      for (const cancel of cancels) cancel()
      await saves.release().catch(onError)
      saves.stop()
      inbox.stop()
      await completeness.stop()
      living.stop()
      await post.stop()
    },
  }
}

/** The call that an operation is about. */
function callIn(operation: Operation, args: readonly unknown[]): string | undefined {
  const [about] = args
  if (operation === 'append') return (about as Push).call
  return typeof about === 'string' ? about : undefined
}
