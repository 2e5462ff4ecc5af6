import type { AtOnce } from '../ports/maybe.ts'
import { isLast, type Push } from '../ports/push.ts'
import type { Sessions } from '../ports/sessions.ts'
import { isThere, someCall } from './calls.ts'
import { createChanges } from './changes.ts'
import { createFinals, type Finals } from './finals.ts'
import { createLookups } from './lookups.ts'
import { createMoves, type Moves } from './moves.ts'
import { createPushes, type Pushes } from './pushes.ts'
import { createRegistry, type Registry } from './registry.ts'
import { createResumes, type Resumes } from './resumes.ts'
import { createSending } from './sending.ts'
import { isForgettable, mayResume, type Session } from './session.ts'
import { createSockets } from './sockets.ts'
import { createSteps } from './steps.ts'

export interface SessionTableOptions {
  /** How long final notices are worth telling, in ms [WS4]. */
  readonly windowMs: number
  /** How long an extended session can be resumed, in ms [RES1]. */
  readonly resumeWindowMs: number
  /** Names the incarnation of a log that begins. */
  readonly newEpoch: () => string
  /** Whether other processes have sessions, too: what changes is noted for a save, and relays are taken once [EXT4]. */
  readonly isShared?: boolean
  /** Something has changed that a save has to write, and nothing had before. */
  readonly onChanged?: () => void
}

/** The parts that a session table does not do: whether something is saved, and where a session is by now. */
type Beyond = 'confirm' | 'hasMoved' | 'findAt'

/** The sessions of one process, in its memory: no I/O, no clock, no random. */
export interface SessionTable
  extends Omit<AtOnce<Sessions>, Beyond | keyof Resumes | keyof Pushes | keyof Moves | keyof Finals>,
    Resumes,
    Omit<Pushes, 'appendTo'>,
    Omit<Moves, 'leave'>,
    Omit<Finals, 'passOn'>,
    Pick<Registry, 'get' | 'all' | 'ofParticipant' | 'changes'> {
  readonly now: Registry['now']
  /** Takes up a session as another process has left it; it has no socket. */
  adopt(session: Session): void
  /** It is over, whatever it holds. */
  forget(sessionId: string): void
  /** Another process has it from now on. */
  drop(sessionId: string): Session | undefined
  /** Sessions without a socket that are remembered. */
  countAway(): number
}

export function createSessionTable(options: SessionTableOptions): SessionTable {
  const { isShared = false } = options
  const registry = createRegistry(createChanges(isShared, options.onChanged), options.newEpoch)
  const { changes, get, all, ofParticipant } = registry
  const sending = createSending(isShared, registry)
  const lookups = createLookups(registry)
  const { passOn, ...finals } = createFinals(registry, sending)
  const { appendTo, ...pushes } = createPushes({ registry, isShared, sending, finals: { passOn } })
  const { leave, ...moves } = createMoves(registry, sending)

  return {
    ...{ changes, get, all, ofParticipant },
    get now() {
      return registry.now
    },
    ...lookups,
    ...createSockets(registry, sending),
    ...createResumes(registry, sending, options.resumeWindowMs),
    ...finals,
    ...pushes,
    appendLive(participant, push, at, began) {
      const ids = lookups.liveOf(participant, at, began)
      for (const id of ids) sending.append(get(id) as Session, push)
      return ids.length
    },
    ...moves,
    ...createSteps({ registry, sending, pushes: { appendTo }, moves: { leave } }),
    adopt: registry.add,
    forget(sessionId) {
      const session = get(sessionId)
      if (session !== undefined) registry.forget(session)
    },
    drop(sessionId) {
      const session = get(sessionId)
      if (session !== undefined) registry.drop(session)
      return session
    },
    sweep: (at) => sweep(registry, options, at),
    countAway: () => registry.detached.count(),
  }
}

function sweep(registry: Registry, { windowMs, resumeWindowMs }: SessionTableOptions, at: number): void {
  registry.now = at
  const longestMs = Math.max(windowMs, resumeWindowMs)
  for (const session of registry.detached.all()) {
    const isDue = (entry: { push: Push; at: number }) => isLast(entry.push) && at - entry.at >= windowMs
    if (!mayResume(session) && session.log?.all().some(isDue)) {
      session.log.retain((entry) => !isDue(entry))
      registry.changes.changed(session)
    }
    const { socket } = session
    if (socket.is === 'open') continue
    if (someCall(session, isThere)) socket.idleSince = at
    else if (isForgettable(session) || at - socket.idleSince >= longestMs) registry.forget(session)
  }
}
