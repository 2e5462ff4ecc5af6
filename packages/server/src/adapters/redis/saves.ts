import { Cluster } from 'ioredis'
import { StoreError } from '../../ports/store-error.ts'
import type { Change } from '../../session/changes.ts'
import { writeEntry, writeState } from '../../session/copy.ts'
import type { Session } from '../../session/session.ts'
import { participantHash, tagOfSessionId } from '../../session/session-id.ts'
import type { SessionTable } from '../../session/table.ts'
import type { Store } from './connection.ts'
import { indexKey, logKey, rowFields, rowKey } from './directory.ts'

/** Some of what was to be saved is of sessions that other nodes have by now: what was done to those here was done to nobody. */
export class RefusedError extends StoreError {
  constructor() {
    super('unknown', 'a session has another owner by now')
  }
}

export interface SavesOptions {
  readonly store: Store
  readonly node: string
  readonly table: SessionTable
  /** How long a session that nobody comes back to is remembered, in ms. */
  readonly longestMs: number
  /** Another node has the session by now; `hasSocket`: with a socket of its own. */
  readonly onRefused: (session: Session, hasSocket: boolean) => void
  readonly onError: (error: unknown) => void
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
  readonly keys: readonly string[]
  readonly args: readonly (string | number)[]
  readonly bytes: number
}

export function createSaves(options: SavesOptions): Saves {
  const { store, node, table, longestMs, onRefused, onError } = options
  const { changes } = table
  const isCluster = store.client instanceof Cluster
  let current: Promise<void> | undefined
  let next: Promise<void> | undefined
  let isAway = false
  let timer: Timer | undefined
  let isReleased = false
  /** Who gets a session that is just being given away, and how often it was written for that. */
  const heirs = new Map<Session, { readonly to: string; writes: number }>()

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
    if (parts.length === 0) await new Promise(setImmediate)
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
    const keys = part.flatMap((each) => each.keys)
    const args = part.flatMap((each) => each.args)
    let refused: (string | number)[]
    try {
      refused = (await store.run('save', keys, [node, ...args])) as (string | number)[]
    } catch (error) {
      for (const { change } of part) failed(change)
      throw error
    }
    let [isMissing, isRefused] = [false, false]
    for (let i = 0; i < refused.length; i += 2) {
      const { session } = (part[Number(refused[i])] as Written).change
      if (refused[i + 1] !== 'missing') {
        isRefused = true
        onRefused(session, refused[i + 1] === 'moved')
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
    const { sessionId } = session.identity
    const row = rowKey(sessionId)
    // The index changes with the first and the last that is written.
    const index = isGone || isWhole ? indexKey(participantHash(session.identity.participant)) : row
    const keys = [row, logKey(sessionId), index]
    if (isGone) return { change, keys, args: [session.fence, 'gone', '', 0, '', 0, 0], bytes: 0 }
    const heir = heirOf(session)
    const state = isChanged && hasCopy ? writeState(session) : ''
    const entries = log?.added.map(writeEntry) ?? []
    const about = isChanged ? [...rowFields(session, isWhole), 'c', state] : []
    const fields = heir === undefined ? about : [...about, 'o', heir]
    const ttl = isChanged ? ttlOf(session) : ''
    const how = [session.fence, isWhole ? 'all' : 'part', ttl, fields.length]
    const args = [...how, ...fields, log?.whole === true ? '1' : '', log?.dropped ?? 0, entries.length, ...entries]
    const bytes = entries.reduce((sum, entry) => sum + entry.length, state.length)
    return { change, keys, args, bytes }
  }

  /** Another node, or whoever comes first. */
  function heirOf(session: Session): string | undefined {
    const heir = heirs.get(session)
    if (heir !== undefined) heir.writes++
    return heir?.to ?? (isReleased && session.sink === undefined ? '' : undefined)
  }

  function ttlOf({ sink, places, ringing, kept }: Session): number {
    if ((places?.size ?? 0) > 0 || (ringing?.size ?? 0) > 0 || (kept?.size ?? 0) > 0) return placeMs
    return sink === undefined ? longestMs + marginMs : socketMs
  }

  /** On a cluster a script writes what is in one slot. */
  function partsOf(all: readonly Written[]): Written[][] {
    if (!isCluster) return inParts(all)
    const tags = Map.groupBy(all, ({ change }) => tagOfSessionId(change.session.identity.sessionId))
    return [...tags.values()].flatMap(inParts)
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
    const keys = part.flatMap(({ identity }) => [rowKey(identity.sessionId), logKey(identity.sessionId)])
    const args = part.flatMap((session) => [session.fence, ttlOf(session)])
    const lost = await store.run('renew', keys, [node, ...args])
    for (let i = 0; i < lost.length; i += 2) {
      const session = part[Number(lost[i])] as Session
      if (table.get(session.identity.sessionId) !== session || session.isListed) continue
      if (lost[i + 1] === 'missing') changes.tear(session)
      else onRefused(session, lost[i + 1] === 'moved')
    }
  }

  function keysOf(session: Session): string[] {
    const { sessionId, participant } = session.identity
    const hasLog = session.log !== undefined && session.log.size > 0
    return [rowKey(sessionId), indexKey(participantHash(participant)), ...(hasLog ? [logKey(sessionId)] : [])]
  }

  async function areThere(part: readonly Session[]): Promise<boolean> {
    // A key that is named twice counts twice.
    const keys = part.flatMap(keysOf)
    return (await store.exists(keys)) === keys.length
  }

  /** Of sessions whose keys are in one slot, or on one server. */
  async function checkPart(part: readonly Session[]): Promise<void> {
    if (await areThere(part)) return
    for (const session of part) {
      // What has changed meanwhile is written anyway, and says so itself.
      if (table.get(session.identity.sessionId) !== session || session.isListed || (await areThere([session]))) continue
      if (table.get(session.identity.sessionId) === session) changes.tear(session)
    }
  }

  function groups(): Session[][] {
    const saved = [...table.all()].filter(({ isSaved, isListed }) => isSaved && !isListed)
    const slots = isCluster
      ? [...Map.groupBy(saved, ({ identity }) => tagOfSessionId(identity.sessionId)).values()]
      : [saved]
    return slots.flatMap((all) => {
      const parts: Session[][] = []
      for (let i = 0; i < all.length; i += renewals) parts.push(all.slice(i, i + renewals))
      return parts
    })
  }

  function tryAgain(): void {
    if (!isAway || store.client.status !== 'ready' || current !== undefined) return
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
      const heir = { to, writes: 0 }
      heirs.set(session, heir)
      changes.tear(session)
      try {
        // What comes meanwhile may be on its way in a save that somebody else waits for.
        const isOwn = () => table.get(session.identity.sessionId) === session
        for (let seen = -1; (seen !== heir.writes || session.isListed) && isOwn(); ) {
          seen = heir.writes
          const { final } = session.upstream
          await settle()
          // What its client was told stands by now: it need not ask for that again.
          if (session.upstream.final !== final) changes.tear(session)
        }
      } finally {
        heirs.delete(session)
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
      timer = setInterval(tryAgain, againMs)
      timer.unref()
    },
    stop() {
      clearInterval(timer)
    },
  }
}
