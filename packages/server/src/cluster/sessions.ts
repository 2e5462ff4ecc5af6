import { andThen } from '../ports/maybe.ts'
import { isRelay } from '../ports/push.ts'
import { tagOfSessionId } from '../ports/session-id.ts'
import type {
  SessionLookup,
  SessionPlaces,
  SessionPushes,
  SessionSockets,
  SessionStep,
  Sessions,
  Sink,
} from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import type { AskOwner } from './ask-owner.ts'
import type { BelievedDirectory } from './directory.ts'
import type { Inbox } from './inbox.ts'
import type { Living } from './living.ts'
import type { OwnSessions } from './own-sessions.ts'
import type { Owner } from './owner.ts'
import type { ParticipantSessions } from './participant-sessions.ts'
import { createResumes } from './resumes.ts'

export interface SessionsOptions {
  readonly node: string
  readonly own: OwnSessions
  readonly owner: Owner
  readonly directory: BelievedDirectory
  readonly inbox: Pick<Inbox, 'ask'>
  readonly living: Pick<Living, 'isSaid' | 'isThere' | 'staysSilent'>
  readonly participantSessions: ParticipantSessions
  readonly askOwner: AskOwner
  readonly movePlace: Sessions['move']
  /** The socket of a session at another node. */
  readonly remoteSink: (node: string, sessionId: string) => Sink
}

/** The sessions of all nodes, as the rest of this node sees them: what is not here is done where the session's owner is. */
export function createSessions(options: SessionsOptions): Sessions {
  const { own, participantSessions } = options
  return {
    ...socketsOf(options),
    ...lookupOf(options),
    ...pushesOf(options),
    ...placesOf(options),
    owing: participantSessions.owing,
    collectFinals: participantSessions.collectFinals,
    sweep: (at) => own.table.sweep(at),
  }
}

const away = () => new StoreError('unavailable', 'Redis is away')

function socketsOf({ node, own, owner, directory, living }: SessionsOptions): SessionSockets {
  const { table, saves, lost } = own

  /** Others have to find the session before its client hears anything [ORD3]. */
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

  return {
    async open(identity, sink, at) {
      const open = table.open(identity, sink, at)
      await registered(identity.sessionId, sink, true)
      return open
    },
    ...createResumes({ table, owner, registered, settle: saves.settle }),
    ready: (id, sink) => table.ready(id, sink),
    async detach(...how) {
      const isGone = table.detach(...how)
      // Others look for connected sessions; if the store is away they learn it later.
      if (isGone) await saves.settle()?.catch(own.saveFailed)
      return isGone
    },
    async hasMoved(id, sink) {
      const here = table.get(id)
      if (here?.socket.is === 'open' && here.socket.sink !== sink) return true
      const row = await directory.row(id)
      if (row === undefined || row.owner === node) return false
      if (here === undefined) return row.hasSocket
      // Redis lost the fence, and an earlier owner wrote first: this node writes the session over that.
      if (Number(row.fence) < here.saving.fence) return false
      lost.refused(here, row.hasSocket)
      return true
    },
    renew: table.renew,
    prove: table.prove,
    doubt(id) {
      const rings = table.doubt(id)
      return rings.length === 0 ? rings : andThen(saves.settle(), () => rings)
    },
    trust: table.trust,
    acknowledge: table.acknowledge,
  }
}

function lookupOf({
  node,
  own,
  owner,
  directory,
  living,
  participantSessions,
  askOwner,
  remoteSink,
}: SessionsOptions): SessionLookup {
  const { table } = own
  return {
    heldHere: table.heldHere,
    unaware: table.unaware,
    async sinkOf(id, at = node) {
      if (owner.isHere(id)) return table.sinkOf(id)
      const row = tagOfSessionId(id) === undefined ? undefined : await directory.row(id)
      if (owner.isHere(id)) return table.sinkOf(id)
      if (row === undefined) return at === node ? undefined : remoteSink(at, id)
      return row.hasSocket && row.owner !== node ? remoteSink(row.owner, id) : undefined
    },
    liveOf: participantSessions.liveOf,
    mayRing: participantSessions.mayRing,
    seen: participantSessions.seen,
    async wasClosed(id) {
      const at = owner.isHere(id) || tagOfSessionId(id) === undefined ? node : await owner.ownerOf(id)
      // No answer would come in time, and the client that waits for this has come back elsewhere.
      return at !== undefined && at !== node && (await living.staysSilent(at)) ? false : askOwner('wasClosed', id)
    },
    // The row says it beside the loss itself: who just came back elsewhere does not wait for the node that it left.
    async awaitedMs(id, at) {
      if (owner.isHere(id) || tagOfSessionId(id) === undefined) return table.awaitedMs(id, at)
      const row = await directory.row(id)
      const isElsewhere = row?.hasSocket === true && row.owner !== at && row.owner !== node
      return isElsewhere && (await living.isThere(row.owner)) ? 'back' : row?.awaitedMs
    },
    hasHungUp: table.hasHungUp,
    knowsEnd: table.knowsEnd,
    hasLeft: table.hasLeft,
    holdsAny: (id) => askOwner('holdsAny', id),
    isIdle: table.isIdle,
    inCall: (id) => askOwner('inCall', id),
  }
}

type Pushes = Omit<SessionPushes, 'owing' | 'collectFinals'>

function pushesOf({ own, owner, participantSessions, askOwner }: SessionsOptions): Pushes {
  const { table, saves, lost } = own
  return {
    append(id, push, isLost = false) {
      if (isLost && !owner.isHere(id)) return owner.takeFromSilent(id).then(() => askOwner('append', id, push))
      if (!saves.isAway || !owner.isHere(id)) return askOwner('append', id, push)
      // Its client may go on at another node, which would know nothing of it.
      if (!isRelay(push)) return Promise.reject(away())
      // A client with its socket here still gets the relay. The relay is lost if this node dies [EXT3].
      const session = table.get(id)
      if (session?.socket.is !== 'open' || !session.socket.isReady) throw away()
      const result = table.append(id, push)
      return result === 'sent' ? 'volatile' : result
    },
    appendLive: (...how) => (saves.isAway ? Promise.reject(away()) : participantSessions.appendLive(...how)),
    appendRung: (...how) => (saves.isAway ? Promise.reject(away()) : participantSessions.appendRung(...how)),
    confirm: (call) => andThen(saves.settle(), () => lost.confirm(call)),
  }
}

function placesOf({ node, own, owner, inbox, askOwner, movePlace }: SessionsOptions): SessionPlaces {
  const { table, saves } = own

  function apply(id: string, step: SessionStep) {
    if (!saves.isAway || step.pushes === undefined || !owner.isHere(id)) return askOwner('apply', id, step)
    // Its client may go on at another node, which would know nothing of these pushes. The parts that relays need stay here.
    const { pushes: _, early: __, isOver: ___, ...rest } = step
    table.apply(id, rest)
    return Promise.reject(away())
  }

  return {
    findAt: (id, at) => (at === node ? owner.isHere(id) : (inbox.ask(at, ['find', id]) as Promise<boolean>)),
    apply(id, { isLost, ...step }) {
      if (isLost && !owner.isHere(id)) return owner.takeFromSilent(id).then(() => apply(id, step))
      const done = apply(id, step)
      // Others have to find the session that this may have made here.
      return step.orOpen === undefined ? done : andThen(done, (early) => andThen(saves.settle(), () => early))
    },
    move: movePlace,
    keep: (id, push) => askOwner('keep', id, push),
  }
}
