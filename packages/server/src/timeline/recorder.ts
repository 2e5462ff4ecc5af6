/**
 * Writes down what is seen of calls beside their events [TRACE1]: in memory at once, and from there in batches. A call
 * only waits for it at its end, and not for long, if an endpoint gets the report of its media [STAT1]. Entries beyond the
 * limits are dropped.
 *
 *   const recorder = createRecorder({ store, now, onDropped, onError })
 *   recorder.record(call, { what: 'rung', side: 'callee', sessionId, detail: {} })
 *   recorder.relayed(callKey(call), 'caller', 'webrtc.offer', data)      counted, and written now and then
 *   await recorder.flushAll()
 */
import { type Call, type CallRef, refOf, type Side } from '../call/call.ts'
import type { TimelineRow } from '../call/observed.ts'
import type { Cancel } from '../ports/clock.ts'
import { StoreError } from '../ports/store-error.ts'
import { refusedKeptMs, type TimelineStore } from '../ports/timeline.ts'
import { every } from '../time/alarms.ts'
import { createMemberRows, type MemberRows } from './member-rows.ts'
import { createTraffic, type RelayedData } from './traffic.ts'
import { createWriteBehind } from './write-behind.ts'

/** A sighting, which gets a name; its time is now, if `at` does not say another. */
export type Entry = Omit<TimelineRow, 'product' | 'callUuid' | 'id' | 'at'> & Partial<Pick<TimelineRow, 'at'>>

export interface Recorder {
  record(ref: CallRef, entry: Entry): void
  /** The same under an id, so that it takes the place of the previous one; answers the id, a new one if none is given. */
  replace(id: string | undefined, ref: CallRef, entry: Entry): string
  /** A call is answered or over: of a call to a group, what was seen before of the member who answered can be stored now. */
  settled(call: Call): void
  /** A message was passed on: counted here, for the relay path does not touch a store. */
  relayed(key: string, side: Side, event: string, data: RelayedData): void
  /** Resolves when everything that was recorded is stored; rejects where the store fails. */
  flush(): Promise<void>
  /** The same with what was counted, which is written now and then by itself. */
  flushAll(): Promise<void>
  start(): void
  /** Writes what is left, if the store takes it. */
  stop(): Promise<void>
}

export interface RecorderOptions {
  readonly store: Pick<TimelineStore, 'add' | 'pruneRefused'>
  /** The clock that calls go by. */
  readonly now: () => number
  /** How long calls are kept, in ms: invites that were refused are not kept longer. Null: for ever. */
  readonly retentionMs: number | null
  /** This number of entries was not written since the last report, and why. */
  readonly onDropped: (count: number) => void
  /** The first message of its kind was passed on from a side of a call to the other. */
  readonly onFirstRelay?: ((ref: CallRef, side: Side, event: string) => void) | undefined
  readonly onError: (error: unknown) => void
}

/** How often what waits is written, and how often what was counted joins it. In ms. */
const writeMs = 1_000
const countMs = 5_000
/** When the recorder looks for invites that were refused long ago, in ms: first after the start, then in each period. */
const firstPruneMs = 60_000
const pruneMs = 60 * 60_000
export function createRecorder(options: RecorderOptions): Recorder {
  const { store, now, retentionMs, onDropped, onError } = options
  const rows = createWriteBehind(store)
  const early = createMemberRows()
  const nextId = createIds()
  const traffic = createTraffic({ now, nextId, write: rows.put, onFirst: options.onFirstRelay })
  let isAway = false
  let countedAt = performance.now()
  let pruneAt = Number.POSITIVE_INFINITY
  let stop: Cancel = () => {}

  async function prune(): Promise<void> {
    pruneAt = performance.now() + pruneMs
    const before = now() - Math.min(refusedKeptMs, retentionMs ?? refusedKeptMs)
    while ((await store.pruneRefused(before)) > 0) await Bun.sleep(10)
  }

  /** Said once, however long the store is away. */
  function failed(error: unknown): void {
    const isStore = error instanceof StoreError
    if (!isStore || !isAway) onError(error)
    isAway ||= isStore
  }

  async function turn(): Promise<void> {
    const dropped = rows.takeDropped()
    if (dropped > 0) onDropped(dropped)
    if (performance.now() - countedAt >= countMs) {
      countedAt = performance.now()
      traffic.sweep()
      early.sweep(now())
    }
    // An entry that the store has not taken yet is not sent again at the same time.
    if (rows.isWriting()) return
    try {
      await rows.write()
      if (performance.now() >= pruneAt) await prune()
      isAway = false
    } catch (error) {
      failed(error)
    }
  }

  return {
    ...createEntries(rows, early, nextId, now),
    relayed: (key, side, event, data) => traffic.count(key, refOf, side, event, data),
    flush: rows.write,
    flushAll() {
      traffic.write()
      return rows.write()
    },
    start() {
      pruneAt = performance.now() + firstPruneMs
      stop = every(writeMs, () => void turn())
    },
    async stop() {
      stop()
      traffic.write()
      await rows.write().catch(failed)
    },
  }
}

/** Names of entries: later ones of one process are greater. */
function createIds(): () => string {
  const run = crypto.randomUUID().slice(0, 8)
  let names = 0
  return () => {
    names++
    return `${run}-${names.toString(36).padStart(8, '0')}`
  }
}

/** Makes the rows of what was seen. */
function createEntries(
  rows: Pick<ReturnType<typeof createWriteBehind>, 'put' | 'drop'>,
  early: MemberRows,
  nextId: () => string,
  now: () => number,
): Pick<Recorder, 'record' | 'replace' | 'settled'> {
  const isTooOften = createRefusedLimit()
  return {
    record(ref, entry) {
      if (entry.what === 'refused' && isTooOften(ref, entry)) return rows.drop()
      const row = { product: ref.product, callUuid: ref.callUuid, id: nextId(), at: now(), ...entry }
      rows.put(row)
      if (entry.member !== undefined) early.keep(row)
    },
    replace(id = nextId(), { product, callUuid }, entry) {
      rows.put({ product, callUuid, id, at: now(), ...entry })
      return id
    },
    settled(call) {
      for (const row of early.take(call)) if (call.group && row.member === call.callee.userId) rows.put(row)
    },
  }
}

/** The most refused invites a second, and of one participant a minute: any uuid can be named in one. */
const mostRefused = 20
export const mostRefusedOfOne = 5

/** Whether one more refused invite is too many to be written down. */
function createRefusedLimit() {
  const refused = { second: 0, count: 0, minute: 0, ofOne: new Map<string, number>() }
  return ({ product }: CallRef, { asker }: Entry): boolean => {
    const second = Math.floor(performance.now() / 1_000)
    const minute = Math.floor(second / 60)
    if (refused.minute !== minute) Object.assign(refused, { minute, ofOne: new Map() })
    if (refused.second !== second) Object.assign(refused, { second, count: 0 })
    const name = JSON.stringify([product, asker?.role, asker?.userId])
    const ofOne = (refused.ofOne.get(name) ?? 0) + 1
    if (ofOne > mostRefusedOfOne) return true
    refused.ofOne.set(name, ofOne)
    refused.count++
    return refused.count > mostRefused
  }
}
