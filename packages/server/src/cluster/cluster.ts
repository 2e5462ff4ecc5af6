import { type Call, callKey, placeOf } from '../call/call.ts'
import { callMark } from '../call/read.ts'
import type { Timers } from '../ports/clock.ts'
import type { MissingSessions } from '../ports/missing-sessions.ts'
import type { Sessions } from '../ports/sessions.ts'
import { createAskOwner } from './ask-owner.ts'
import { createCallNews } from './call-news.ts'
import type { Copies } from './copies.port.ts'
import type { Deaths } from './deaths.ts'
import type { Directory } from './directory.port.ts'
import { createInbox } from './inbox.ts'
import { createMovePlaces } from './move-places.ts'
import { createOtherNodes } from './other-nodes.ts'
import { createOwnSessions } from './own-sessions.ts'
import { createOwner } from './owner.ts'
import { createParticipantSessions } from './participant-sessions.ts'
import type { Post } from './post.port.ts'
import { createRemoteSinks } from './remote-sinks.ts'
import { createRequests } from './requests.ts'
import { createSessions } from './sessions.ts'

export interface ClusterOptions {
  readonly directory: Directory
  readonly copies: Copies
  readonly post: Post
  /** Names this run of this node: no other has had the name. */
  readonly node: string
  /** The nodes that were found dead: `fell` writes them down. */
  readonly deaths: Deaths
  /** How long final notices are worth telling, in ms [WS4]. */
  readonly windowMs: number
  /** How long an extended session can be resumed, in ms [RES1]. */
  readonly resumeWindowMs: number
  /** Whether it is certain that a node serves no more; without this function only the store decides. */
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
  /** The time limit of one round of `settled`, in ms; tests set a shorter one. */
  readonly heardMs?: number
  readonly timers: Timers
  /** Names a log: no other has had the name [RES2]. */
  readonly newEpoch: () => string
}

export interface Cluster {
  readonly sessions: Sessions
  /**
   * Resolves when everything that has changed until now is saved: no client hears of it before, except a base session
   * that gets a relay of its peer. Undefined where there is nothing to wait for.
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
  /** Whether the last save succeeded. If not, new clients get the answer to come later. */
  canSave(): boolean
  /** Whether this node could say here just now that it lives. */
  isReady(): boolean
  start(): Promise<void>
  /** Sessions from before this start of which the store knows nothing. */
  readonly missing: MissingSessions
  /** Looks at once who lives, and whether the store still has what this node wrote. */
  look(): Promise<void>
  /** Resolves when everything that was sent to this node before is done and saved; rejects where it hears nothing for half a minute. */
  settled(): Promise<void>
  /** Hands over what other nodes need to go on with the sessions of this one. */
  close(): Promise<void>
}

/** A beat a second, and the way of one. */
const readyMs = 2_000
/** Each waits for 3 s. */
const settleRounds = 10

/** One node among several: each session is in the memory of its owner, and what another node needs to go on with it is in Redis. */
export function createCluster(options: ClusterOptions): Cluster {
  const { node, post } = options
  const parts = createParts(options)
  const { own, nodes, inbox, sessions } = parts
  const { living, completeness, look } = nodes
  const { saves } = own
  return {
    sessions,
    save: saves.save,
    ...createNews(node, parts),
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
      await completeness.start()
      await living.start()
      own.startLooks()
    },
    missing: completeness.missing,
    look,
    async settled() {
      for (let round = 1; !(await inbox.heard()); round++)
        if (round === settleRounds) throw new Error(`node ${node} has not heard what it was told`)
      await saves.save()
    },
    async close() {
      await own.close()
      inbox.stop()
      await completeness.stop()
      living.stop()
      await post.stop()
    },
  }
}

/** What a node consists of. Some parts need each other, so those that come first call the later ones by name. */
function createParts(options: ClusterOptions) {
  const { node, post, onError, timers } = options
  const own = createOwnSessions(options)
  const { table, saves, lost } = own
  const nodes = createOtherNodes({
    ...{ directory: options.directory, post, node, own, onError, timers },
    deaths: options.deaths,
    isDead: options.isDead,
    owners: options.owners,
    onSilent: (other) => inbox.giveUp(other),
    onMissing: (other) => inbox.tell(other, ['look']),
  })
  const { living, directory } = nodes
  const inbox = createInbox({
    ...{ post, node, onError, heardMs: options.heardMs, timers },
    onFrame: (frame, from) => requests.answer(frame, from),
    saved: saves.save,
    onRefused: (frame, answer) => requests.answerOfRefused(frame, answer),
    isSilent: living.isSilent,
    onWaiting: options.onWaiting ?? (() => {}),
    onStall: saves.renew,
  })
  const owner = createOwner({
    ...{ node, table, directory, saves, living, timers },
    ask: inbox.ask,
    isDead: nodes.isDead,
    isStillDead: nodes.isStillDead,
    onTaken: (from) => inbox.tell(from, ['taken']),
    newEpoch: options.newEpoch,
  })
  const participantSessions = createParticipantSessions({
    ...{ node, table, directory, owner, inbox, living, timers },
    append: (...how) => sessions.append(...how),
    settle: saves.settle,
    onRefused: lost.refused,
  })
  const delivered = createCallNews()
  const committed = createCallNews()
  const requests = createRequests({
    ...{ node, table, owner, finals: participantSessions },
    onCall(call) {
      options.onCall?.(call)
      committed.release(callKey(call))
    },
    onTold(call, version) {
      delivered.release(call)
      options.onTold?.(call, version)
    },
    onTaken: own.doubt,
    onLook: () => void nodes.look().catch(own.saveFailed),
  })
  const { doHere } = requests
  const askOwner = createAskOwner({ node, owner, inbox, living, doHere, committed, delivered, timers })
  const movePlace = createMovePlaces({ node, table, owner, inbox, saves, askOwner, timers })
  const remoteSink = createRemoteSinks(inbox, living, onError, timers)
  const sessions = createSessions({
    ...{ node, own, owner, directory, inbox, living, participantSessions, askOwner, movePlace, remoteSink },
  })
  return { own, nodes, inbox, sessions, delivered, committed }
}

type Parts = ReturnType<typeof createParts>

/** News of this node for the nodes that have a place in a call. */
function createNews(
  node: string,
  { inbox, committed, delivered }: Pick<Parts, 'inbox' | 'committed' | 'delivered'>,
): Pick<Cluster, 'tell' | 'told'> {
  function othersOf(call: Call): Set<string> {
    const others = new Set([placeOf(call, 'caller')?.node ?? node, placeOf(call, 'callee')?.node ?? node])
    others.delete(node)
    return others
  }

  return {
    tell(call) {
      committed.release(callKey(call))
      for (const other of othersOf(call)) inbox.tell(other, ['call', callMark, call])
    },
    told(call) {
      delivered.release(callKey(call))
      for (const other of othersOf(call)) inbox.tellLater(other, ['told', callKey(call), call.version])
    },
  }
}
