import type { Cancel, Timers } from '../ports/clock.ts'
import { participantHash } from '../ports/session-id.ts'
import { StoreError } from '../ports/store-error.ts'
import { isLive, someCall } from '../session/calls.ts'
import type { Change } from '../session/changes.ts'
import { writeEntry, writeState } from '../session/copy.ts'
import { isOpen, type Session } from '../session/session.ts'
import type { SessionTable } from '../session/table.ts'
import type { Copies, Refusal, SessionWrite } from './copies.port.ts'
import { rowFields } from './rows.ts'

/** Some of what was to be saved is of sessions that other nodes have by now: what was done to those here was done to nobody. */
export class RefusedError extends StoreError {
  constructor() {
    super('unknown', 'a session has another owner by now')
  }
}

export interface SavesOptions {
  readonly copies: Copies
  readonly table: SessionTable
  /** How long a session that nobody comes back to is remembered, in ms. */
  readonly longestMs: number
  /** Another node has the session by now; `hasSocket`: with a socket of its own. */
  readonly onRefused: (session: Session, hasSocket: boolean) => void
  readonly onError: (error: unknown) => void
  readonly timers: Timers
}

/** What changed in the sessions of this node, on its way to the store: all of a turn of the event loop in one write. */
export interface Saves {
  /**
   * Resolves when everything that has changed until now is saved; undefined where nothing waits for that. Rejects with a
   * `StoreError` where the store is away: it is saved when the store is back; with a `RefusedError` where all is saved but
   * what is another node's.
   */
  save(): Promise<void> | undefined
  /** The same for who does not ask what became of single sessions. */
  settle(): Promise<void> | undefined
  /** The last save failed, and none has succeeded since. */
  readonly isAway: boolean
  /** Saves a session in the name of another node, whose it is from then on. */
  give(session: Session, to: string): Promise<void>
  /** Gives sessions of this node to whoever needs them: it stops. */
  release(): Promise<void>
  /** Sessions with a socket are remembered for longer; those that others have by now are let go. */
  renew(): Promise<void>
  /** Looks whether everything is still there: it takes one command for hundreds. */
  check(): Promise<void>
  start(): void
  stop(): void
}

/** A session with a socket is renewed by its owner; what a dead one leaves behind goes after that. In ms. */
const socketMs = 3_600_000
/** Longer than a call lasts. */
const placeMs = 90_000_000
const marginMs = 60_000
/** What one script writes at the most: others wait as long. */
const mostSessions = 200
const mostBytes = 512 * 1024
/** A store that was away is tried again so much later, in ms. */
const againMs = 100
const renewals = 500
/** So many are sent at once: the last one is to be answered in time, too. */
const mostScripts = 8

/** Whether some have to be written once more, and whether some are another node's. */
interface Sent {
  readonly isMissing: boolean
  readonly isRefused: boolean
}

/** So many scripts at once; goes on where one fails, and rejects with what failed first. */
async function someAtOnce<T>(parts: readonly T[], work: (part: T) => Promise<void>): Promise<void> {
  const failures: unknown[] = []
  for (let i = 0; i < parts.length; i += mostScripts) {
    const results = await Promise.allSettled(parts.slice(i, i + mostScripts).map(work))
    failures.push(...results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : [])))
  }
  if (failures.length > 0) throw failures[0]
}

interface Written {
  readonly change: Change
  readonly write: SessionWrite
  readonly bytes: number
}

const nothing = { isWhole: false, dropped: 0, added: [] }

export function createSaves(options: SavesOptions): Saves {
  const { copies, table, longestMs, onRefused, onError, timers } = options
  const { changes } = table
  let current: Promise<void> | undefined
  let next: Promise<void> | undefined
  let isAway = false
  let stopTrying: Cancel | undefined
  let isReleased = false
  /** Who gets a session that is just being given away, and how often it was written for that. */
  const newOwners = new Map<Session, { readonly to: string; writes: number }>()

  function save(): Promise<void> | undefined {
    if (isAway) return away()
    if (changes.isEmpty) return current
    if (current === undefined) return begin()
    next ??= current.then(follow, follow)
    return next
  }

  function settle(): Promise<void> | undefined {
    return save()?.catch((error) => {
      if (!(error instanceof RefusedError)) throw error
    })
  }

  /** That the store is away is told of by its connection. */
  function onSaveFailed(error: unknown): void {
    if (!(error instanceof StoreError)) onError(error)
  }

  /** What waits for the store that is away is not written again and again: the timer tries. */
  function away(): Promise<void> | undefined {
    // What is just being tried again is not saved yet.
    if (changes.isEmpty && current === undefined) return undefined
    return Promise.reject(new StoreError('unavailable', 'Redis is away: sessions are saved when it is back'))
  }

  function follow(): Promise<void> {
    next = undefined
    return save() ?? Promise.resolve()
  }

  function begin(): Promise<void> {
    const mine = write(changes.take(), changes.takeLost()).finally(() => {
      if (current === mine) current = undefined
    })
    current = mine
    return mine
  }

  /** `isLost`: something that was told meanwhile belongs to a session that is another node's by now. */
  async function write(taken: readonly Change[], isLost: boolean): Promise<void> {
    const parts = partsOf(taken.map(written))
    const sent: Sent[] = []
    try {
      await someAtOnce(parts, async (part) => void sent.push(await send(part)))
    } catch (error) {
      isAway = true
      throw error
    }
    isAway = false
    // What the store does not have any more is written whole.
    if (sent.some(({ isMissing }) => isMissing)) await writeAgain()
    // Whoever is told of what is lost asks in this turn.
    if (parts.length === 0) await new Promise<void>((resolve) => timers.turn(resolve))
    if (isLost || sent.some(({ isRefused }) => isRefused)) throw new RefusedError()
  }

  /** With what has changed meanwhile, for which somebody waits for the next save. */
  async function writeAgain(): Promise<void> {
    try {
      await write(changes.take(), false)
    } catch (error) {
      if (error instanceof RefusedError) changes.lost()
      throw error
    }
  }

  async function send(part: readonly Written[]): Promise<Sent> {
    let refused: readonly Refusal[]
    try {
      refused = await copies.save(part.map(({ write }) => write))
    } catch (error) {
      for (const { change } of part) failed(change)
      throw error
    }
    let [isMissing, isRefused] = [false, false]
    for (const { index, why } of refused) {
      const { session } = (part[index] as Written).change
      if (why !== 'missing') {
        isRefused = true
        onRefused(session, why === 'moved')
      } else if (table.get(session.identity.sessionId) === session) {
        changes.tear(session)
        isMissing = true
      }
    }
    return { isMissing, isRefused }
  }

  function failed(change: Change): void {
    const { session, isGone } = change
    if (isGone || table.get(session.identity.sessionId) === session) changes.failed(change)
  }

  function written(change: Change): Written {
    const { session, isGone, isChanged, isWhole, hasCopy, log } = change
    const { sessionId, participant } = session.identity
    const about = { sessionId, hash: participantHash(participant), fence: session.saving.fence }
    if (isGone) {
      const gone = { row: undefined, state: '', newOwner: undefined, ttlMs: undefined, log: nothing }
      return { change, write: { ...about, what: 'gone', ...gone }, bytes: 0 }
    }
    const state = isChanged && hasCopy ? writeState(session) : ''
    const added = log?.added.map(writeEntry) ?? []
    const write: SessionWrite = {
      ...about,
      what: isWhole ? 'all' : 'part',
      row: isChanged ? rowFields(session) : undefined,
      state,
      newOwner: newOwnerOf(session),
      ttlMs: isChanged ? ttlOf(session) : undefined,
      log: log === undefined ? nothing : { isWhole: log.whole, dropped: log.dropped, added },
    }
    return { change, write, bytes: added.reduce((sum, entry) => sum + entry.length, state.length) }
  }

  /** Another node, or whoever comes first. */
  function newOwnerOf(session: Session): string | undefined {
    const newOwner = newOwners.get(session)
    if (newOwner !== undefined) newOwner.writes++
    return newOwner?.to ?? (isReleased && !isOpen(session) ? '' : undefined)
  }

  function ttlOf(session: Session): number {
    if (someCall(session, isLive)) return placeMs
    return isOpen(session) ? socketMs : longestMs + marginMs
  }

  function partsOf(all: readonly Written[]): Written[][] {
    return [...Map.groupBy(all, ({ write }) => copies.partOf(write.sessionId)).values()].flatMap(inParts)
  }

  function inParts(all: readonly Written[]): Written[][] {
    const parts: Written[][] = []
    let bytes = mostBytes
    for (const each of all) {
      const last = parts.at(-1)
      if (last === undefined || bytes + each.bytes > mostBytes || last.length >= mostSessions) {
        parts.push([each])
        bytes = each.bytes
      } else {
        last.push(each)
        bytes += each.bytes
      }
    }
    return parts
  }

  async function renewPart(part: readonly Session[]): Promise<void> {
    const remembered = part.map((session) => ({
      sessionId: session.identity.sessionId,
      fence: session.saving.fence,
      ttlMs: ttlOf(session),
    }))
    for (const { index, why } of await copies.renew(remembered)) {
      const session = part[index] as Session
      if (table.get(session.identity.sessionId) !== session || session.saving.isListed) continue
      if (why === 'missing') changes.tear(session)
      else onRefused(session, why === 'moved')
    }
  }

  function areThere(part: readonly Session[]): Promise<boolean> {
    return copies.areThere(
      part.map(({ identity, log }) => ({
        sessionId: identity.sessionId,
        hash: participantHash(identity.participant),
        hasLog: log !== undefined && log.size > 0,
      })),
    )
  }

  /** Of sessions of one part. */
  async function checkPart(part: readonly Session[]): Promise<void> {
    if (await areThere(part)) return
    for (const session of part) {
      // What has changed meanwhile is written anyway, and says so itself.
      if (table.get(session.identity.sessionId) !== session || session.saving.isListed || (await areThere([session])))
        continue
      if (table.get(session.identity.sessionId) === session) changes.tear(session)
    }
  }

  function groups(): Session[][] {
    const saved = [...table.all()].filter(({ saving }) => saving.isSaved && !saving.isListed)
    return [...Map.groupBy(saved, ({ identity }) => copies.partOf(identity.sessionId)).values()].flatMap((all) => {
      const parts: Session[][] = []
      for (let i = 0; i < all.length; i += renewals) parts.push(all.slice(i, i + renewals))
      return parts
    })
  }

  function tryAgain(): void {
    if (!isAway || !copies.isConnected() || current !== undefined) return
    const again = changes.isEmpty ? undefined : begin()
    if (again === undefined) isAway = false
    else again.catch(onSaveFailed)
  }

  return {
    save,
    settle,
    get isAway() {
      return isAway
    },
    async give(session, to) {
      const newOwner = { to, writes: 0 }
      newOwners.set(session, newOwner)
      changes.tear(session)
      try {
        // What comes meanwhile may be on its way in a save that somebody else waits for.
        const isOwn = () => table.get(session.identity.sessionId) === session
        for (let seen = -1; (seen !== newOwner.writes || session.saving.isListed) && isOwn(); ) {
          seen = newOwner.writes
          const { final } = session.upstream
          await settle()
          // What its client was told stands by now: it need not ask for that again.
          if (session.upstream.final !== final) changes.tear(session)
        }
      } finally {
        newOwners.delete(session)
      }
    },
    async release() {
      isReleased = true
      for (const session of table.all()) changes.changed(session)
      await (isAway ? begin() : settle())
    },
    async renew() {
      await someAtOnce(groups(), renewPart)
      await settle()
    },
    async check() {
      await someAtOnce(groups(), checkPart)
      await settle()
    },
    start() {
      stopTrying = timers.every(againMs, tryAgain)
    },
    stop() {
      stopTrying?.()
    },
  }
}
