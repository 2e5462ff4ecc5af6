import type { Cancel, Timers } from '../ports/clock.ts'
import type { MissingSessions } from '../ports/missing-sessions.ts'
import { forgetOldest } from '../ports/oldest.ts'
import { tagOfSessionId } from '../ports/session-id.ts'
import { StoreError } from '../ports/store-error.ts'
import type { Directory, Master, Saying } from './directory.port.ts'
import { createMakingUp, type MakingUp } from './making-up.ts'

export interface CompletenessOptions {
  readonly directory: Pick<Directory, 'masters' | 'masterOf' | 'say' | 'said' | 'maker' | 'made'>
  readonly node: string
  /** Those that may own sessions, as far as anybody knows. */
  readonly others: () => Iterable<string>
  /** Known for sure not to serve any more. */
  readonly isDead: (node: string) => Promise<boolean>
  /** The store may not have what this node has written of these sessions. Resolves when it has it again. */
  readonly onForgotten: (isOf: IsOf) => Promise<void>
  /** Others took this node for dead when they needed what it had yet to write again: these sessions missed what came since. */
  readonly onGivenUp: (isOf: IsOf) => Promise<void>
  /** Others have to look, too. */
  readonly onMissing: () => void
  readonly onError: (error: unknown) => void
  readonly timers: Timers
}

type IsOf = (sessionId: string) => boolean

/**
 * Whether the store has what all nodes own. A server may be emptied, or another one may take over that lacks what came
 * last; each owner writes it again. Until all have, or are dead, a missing record is no proof of absence.
 */
export interface Completeness {
  start(): Promise<void>
  /** Sessions that no node can write again, because all nodes that owned them are dead. */
  readonly missing: MissingSessions
  /** Looks at each master: what this node owns is written again where it is not there. */
  look(): Promise<void>
  /**
   * True if a read under a tag can be believed, false if it has to be repeated. `since`: when the read began, on the monotonic
   * clock. Nodes may have written what they own after that. Rejects with a `StoreError` if some node has not written again what
   * it owns within `ms`.
   */
  isWhole(tag: string, since: number, ms?: number): Promise<boolean>
  /**
   * The origin of the master that has a tag, once every other node has written there what it owns. Nobody waits for `except`.
   * Rejects with a `StoreError` if some node has not within 1 s.
   */
  writtenAt(tag: string, except: string): Promise<string>
  stop(): Promise<void>
}

interface Part {
  readonly marker: string
  readonly origin: string
  /** When this node knew that everybody has written what it owns since this master is what it is; infinite before that. */
  completeAt: number
  /** The nodes that live and have yet to write there what they own, at the last look; undefined before that. */
  owing: readonly string[] | undefined
}

const lookMs = 1_000
/** A read waits for the other nodes for at most `waitMs`, and looks again every `againMs`. */
const waitMs = 1_000
const againMs = 100
/** Runs of nodes that are remembered: one that was dead for long may come back. */
const mostNodes = 200
const gone = 'gone'

export function createCompleteness(options: CompletenessOptions): Completeness {
  const { directory, onError, timers } = options
  /** By the name of the master. */
  const parts = new Map<string, Part>()
  const makingUp = createMakingUp({ ...options, look, isComplete: (name) => isComplete(parts.get(name)) })
  const lookNow = createLook(options, parts, makingUp)
  let looking: Promise<void> | undefined
  let stopLooking: Cancel | undefined

  async function look(): Promise<void> {
    looking ??= lookNow(false).finally(() => {
      looking = undefined
    })
    await looking
  }

  async function isBelieved(tag: string, since: number): Promise<boolean> {
    const part = parts.get(directory.masterOf(tag))
    return part !== undefined && part.completeAt < since && (await directory.said(part.marker)) === part.origin
  }

  return {
    async start() {
      await lookNow(true)
      stopLooking = timers.every(lookMs, () => {
        look().catch((error) => {
          if (!(error instanceof StoreError)) onError(error)
        })
      })
    },
    missing: makingUp,
    look,
    async isWhole(tag, since, ms = waitMs) {
      if (await isBelieved(tag, since)) return true
      for (const until = timers.monotonic() + ms; timers.monotonic() < until; await timers.sleep(againMs)) {
        await look()
        // A look that began before may not have seen it.
        if (await isBelieved(tag, Number.POSITIVE_INFINITY)) return false
      }
      throw notWritten()
    },
    async writtenAt(tag, except) {
      for (const until = timers.monotonic() + waitMs; ; await timers.sleep(againMs)) {
        const part = parts.get(directory.masterOf(tag))
        if (part?.owing?.every((other) => other === except)) return part.origin
        if (timers.monotonic() >= until) throw notWritten()
        await look()
      }
    },
    async stop() {
      stopLooking?.()
    },
  }
}

const notWritten = () =>
  new StoreError('unavailable', 'Redis lost something, and not all nodes have written again what they own')

const isComplete = (part: Part | undefined) => part !== undefined && Number.isFinite(part.completeAt)

/** The next look finds out who has written there. */
function forget(part: Part): void {
  part.completeAt = Number.POSITIVE_INFINITY
  part.owing = undefined
}

/** Looks at each master, and notes in its part whether everybody has written there. */
function createLook(options: CompletenessOptions, parts: Map<string, Part>, makingUp: Pick<MakingUp, 'isStarting'>) {
  const { directory, node, others, isDead, onForgotten, onGivenUp, onMissing, timers } = options
  const known = new Set<string>()
  const say = (marker: string, word: string, how: Saying) =>
    directory.say(marker, word, { ...how, serves: !makingUp.isStarting })

  async function lookAt({ name, marker, origin }: Master, isStart: boolean): Promise<void> {
    const last = parts.get(name)
    const part =
      last?.marker === marker && last.origin === origin
        ? last
        : { marker, origin, completeAt: Number.POSITIVE_INFINITY, owing: undefined }
    parts.set(name, part)
    let words = await directory.say(marker, '')
    if (words.get(node) !== origin) {
      forget(part)
      if (!isStart) onMissing()
      if (makingUp.isStarting && words.size === 0) await directory.maker(marker)
      words = await sayAgain(
        part,
        words.get(node),
        isStart,
        (id) => directory.masterOf(tagOfSessionId(id) ?? '') === name,
      )
    }
    if (!isComplete(part)) await noteComplete(part, words)
  }

  async function noteComplete(part: Part, words: ReadonlyMap<string, string>): Promise<void> {
    const { marker, origin } = part
    const missing = [...known].filter((other) => words.get(other) !== origin)
    const areDead = await Promise.all(missing.map(isDead))
    const dead = missing.filter((_, i) => areDead[i])
    if (dead.some((other) => words.get(other) !== gone)) await say(marker, origin, { dead })
    part.owing = missing.filter((_, i) => !areDead[i])
    if (part.owing.length === 0) part.completeAt = timers.monotonic()
  }

  async function sayAgain({ marker, origin }: Part, word: string | undefined, isStart: boolean, isOf: IsOf) {
    if (!isStart && word !== gone) await onForgotten(isOf)
    const words = await say(marker, origin, { isForced: isStart })
    if (words.get(node) !== gone) return words
    await onGivenUp(isOf)
    return say(marker, origin, { isForced: true })
  }

  return async (isStart: boolean): Promise<void> => {
    const before = known.size
    for (const other of others()) if (other !== node) known.add(other)
    // The first look of a start knows nobody: what it found complete has yet to be.
    if (makingUp.isStarting && known.size > before) for (const part of parts.values()) forget(part)
    forgetOldest(known, mostNodes)
    const masters = await directory.masters()
    for (const name of [...parts.keys()]) if (!masters.some((master) => master.name === name)) parts.delete(name)
    await Promise.all(masters.map((master) => lookAt(master, isStart)))
  }
}
