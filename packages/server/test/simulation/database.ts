import {
  type Call,
  type CallRef,
  callKey,
  isAnswered,
  isLive,
  type LiveCall,
  type Outage,
  type Participant,
  ringsAt,
  sideOf,
} from '../../src/call/call.ts'
import type { CallEvent, Step } from '../../src/call/effects.ts'
import type { Beat, Beaten } from '../../src/cluster/heartbeats.port.ts'
import type { Ended, InviteSituation } from '../../src/ports/call-store.ts'
import type { Group, GroupName } from '../../src/ports/groups.ts'
import { outageMs } from '../../src/ports/nodes.ts'
import { type Left, type LeftRow, leaseMs, ownMs } from '../../src/ports/outbox.ts'
import type { Seen } from '../../src/stores/sql/call-steps.ts'
import { groupOf } from './groups.ts'
import type { Scheduler } from './scheduler.ts'
import { Holders } from './signs.ts'
import { Server } from './way.ts'

interface OutboxRow {
  readonly key: string
  readonly version: number
  readonly freeAt: number
}

interface NodeRow {
  readonly beats: number
  readonly hasLeft: boolean
  readonly seenAt: number
  readonly readyAt: number
  readonly sockets: number | null
}

/** What waits for longer was written before the clock was put back, in ms. */
const latestMs = 60_000

/** When a step was committed, in ms since the epoch: by a clock that never jumped, and by the database's own. */
export interface Committed {
  readonly at: number
  readonly shown: number
}

/** A PostgreSQL, as the statements of `stores/postgres` use it: each is whole or not at all, and what it committed stays. */
export class Database extends Server {
  readonly signs = new Holders()
  private runs = 1
  private readonly calls = new Map<string, Call>()
  /** In the order in which they began, too. */
  private readonly liveCalls = new Map<string, LiveCall>()
  private readonly events = new Map<string, CallEvent[]>()
  private readonly outbox = new Map<number, OutboxRow>()
  private readonly nodes = new Map<string, NodeRow>()
  private outages: Outage[] = []
  /** What its clock jumped, as the nodes have agreed, in ms. */
  private agreedMs = 0
  private lastRow = 0
  private readonly commits = new Map<string, readonly Committed[]>()
  /** At whom each call to a group rang: one that was answered forgets that in the end. If it rings in turn, that is nobody at first. */
  private readonly rung = new Map<string, readonly string[]>()
  private readonly scheduler: Scheduler
  private readonly startedAt: number
  private readonly users: readonly string[]

  /** `users`: of whom groups are made. */
  constructor(scheduler: Scheduler, startedAt: number, users: readonly string[] = []) {
    super()
    this.scheduler = scheduler
    this.startedAt = startedAt
    this.users = users
  }

  get origin(): string {
    return `origin-${this.runs}`
  }

  override end(): void {
    super.end()
    this.runs++
    this.signs.clear()
  }

  /** In ms since the epoch. */
  get now(): number {
    return this.startedAt + this.scheduler.now + this.jumpedMs
  }

  /** When a version of a call was committed. */
  readonly committedAt = (callUuid: string, version: number): Committed =>
    this.commits.get(callUuid)?.[version - 1] ?? { at: 0, shown: 0 }

  /** At whom a call to a group rang. */
  rungBy({ callUuid }: Call): readonly string[] | undefined {
    return this.rung.get(callUuid)
  }

  /** Every call with its events, in the order in which they began. */
  get all(): readonly (readonly [call: Call, events: readonly CallEvent[]])[] {
    return [...this.calls].map(([key, call]) => [call, this.events.get(key) ?? []] as const)
  }

  /** How many rows are in the outbox. */
  get left(): number {
    return this.outbox.size
  }

  /** Removes a call, and leaves its rows in the outbox. */
  drop(ref: CallRef): void {
    this.calls.delete(callKey(ref))
    this.liveCalls.delete(callKey(ref))
    this.events.delete(callKey(ref))
  }

  /** The rows in the outbox of steps that were written; undefined where the guard of one of them failed, and none was. */
  commit(steps: readonly Step[], seen?: Seen): readonly number[] | undefined {
    if (seen !== undefined && !this.isAsSeen(seen)) return undefined
    const versions = new Map<string, number>()
    for (const { call } of steps) {
      const key = callKey(call)
      if ((versions.get(key) ?? this.calls.get(key)?.version ?? 0) !== call.version - 1) return undefined
      versions.set(key, call.version)
    }
    return steps.map(({ call, event }) => {
      const key = callKey(call)
      this.calls.set(key, call)
      if (isLive(call)) this.liveCalls.set(key, call)
      else this.liveCalls.delete(key)
      this.events.set(key, [...(this.events.get(key) ?? []), event])
      this.noteRung(call)
      const before = this.commits.get(call.callUuid) ?? []
      const at = Math.round(this.startedAt + this.scheduler.now)
      this.commits.set(call.callUuid, [...before, { at, shown: this.now }])
      this.outbox.set(++this.lastRow, { key, version: call.version, freeAt: this.now + ownMs })
      return this.lastRow
    })
  }

  private noteRung({ callUuid, group }: Call): void {
    const rung = group?.turns?.rang ?? this.rung.get(callUuid) ?? group?.members
    if (rung !== undefined) this.rung.set(callUuid, rung)
  }

  private isAsSeen({ caller, callee, live }: Seen): boolean {
    const versionsOf = (calls: readonly Call[]) => calls.map((call) => `${callKey(call)} ${call.version}`).sort()
    return versionsOf(live).join() === versionsOf(this.liveOf(caller, callee)).join()
  }

  load(ref: CallRef): Call | undefined {
    return this.calls.get(callKey(ref))
  }

  situation(caller: Participant, callee: Participant, callUuid: string): InviteSituation {
    const sameUuid = this.calls.get(callKey({ product: caller.product, callUuid }))
    return { sameUuid, live: this.liveOf(caller, callee) }
  }

  liveOf(...participants: readonly Participant[]): LiveCall[] {
    return this.live().filter((call) => participants.some((each) => sideOf(call, each) !== undefined))
  }

  /** Those that ring at a member of a group as well [GROUP1]. */
  liveCallsOf(participant: Participant): LiveCall[] {
    return this.live().filter((call) => sideOf(call, participant) !== undefined || ringsAt(call, participant))
  }

  group(name: GroupName): Group | undefined {
    return groupOf(name, this.users)
  }

  live(): LiveCall[] {
    return [...this.liveCalls.values()]
  }

  isInCall(participant: Participant): boolean {
    return this.liveOf(participant).some((call) => isAnswered(call) || sideOf(call, participant) === 'caller')
  }

  /** When the last call ended that somebody answered; null: none. */
  lastAnswered({ userId }: Participant): number | null {
    const answered = [...this.calls.values()].flatMap((call) =>
      call.callee.userId === userId && !isLive(call) && call.acceptedAt !== null ? call.endedAt : [],
    )
    return answered.length === 0 ? null : Math.max(...answered)
  }

  dueRings(from: number, to: number, limit: number): LiveCall[] {
    const due = this.live().filter(
      (call) => call.status === 'ringing' && call.ringExpiresAt > from && call.ringExpiresAt <= to,
    )
    return due.sort((one, other) => ringEnd(one) - ringEnd(other)).slice(0, limit)
  }

  /** In the order of their ends. */
  overSince(since: number): Ended[] {
    const ended = [...this.calls].flatMap(([key, call]) => {
      if (isLive(call) || call.endedAt < since) return []
      const event = this.events.get(key)?.at(-1)
      return event === undefined ? [] : [{ call, step: { call, event } }]
    })
    return ended.sort((one, other) => one.call.endedAt - other.call.endedAt)
  }

  stepsAfter(ref: CallRef, version: number): Step[] {
    const key = callKey(ref)
    const call = this.calls.get(key)
    if (call === undefined) return []
    const events = this.events.get(key) ?? []
    return events.slice(version).map((event, i) => ({ call: { ...call, version: version + i + 1 } as Call, event }))
  }

  leftOf(ref: CallRef): LeftRow[] {
    const key = callKey(ref)
    return this.rowsOf(key).map(([row, { version }]) => ({ row, version }))
  }

  private rowsOf(key: string): (readonly [number, OutboxRow])[] {
    return [...this.outbox]
      .filter(([, row]) => row.key === key)
      .sort(([, one], [, other]) => one.version - other.version)
  }

  remove(rows: readonly number[]): void {
    for (const row of rows) this.outbox.delete(row)
  }

  /** As `claim_steps`: a row that is not free holds back those of its call that were written later. */
  claim(limit: number): Left[] {
    const claimed: Left[] = []
    const held = new Set<string>()
    for (const [row, { key, version, freeAt }] of this.outbox) {
      if (claimed.length === limit) break
      if (freeAt > this.now && freeAt <= this.now + latestMs) held.add(key)
      if (!held.has(key)) claimed.push({ row, version, call: this.leftCall(key) })
    }
    for (const { row } of claimed) this.free(row, leaseMs)
    return claimed
  }

  private leftCall(key: string): Left['call'] {
    const call = this.calls.get(key)
    if (call === undefined) return undefined
    const { product, callUuid } = call
    return { product, callUuid, endedAt: isLive(call) ? null : call.endedAt }
  }

  release(rows: readonly number[], afterMs: number): void {
    for (const row of rows) this.free(row, afterMs)
  }

  private free(row: number, afterMs: number): void {
    const known = this.outbox.get(row)
    if (known !== undefined) this.outbox.set(row, { ...known, freeAt: this.now + afterMs })
  }

  oldest(): number | undefined {
    const [first] = this.outbox.values()
    return first && this.events.get(first.key)?.[first.version - 1]?.at
  }

  /** The latest run among those whose names begin so. */
  lastRun(start: string): string | null {
    const runs = [...this.nodes.keys()].filter((name) => name.startsWith(start)).sort()
    return runs.at(-1) ?? null
  }

  /** As `beatSql`. */
  beat({ node, ready, wasAway, outagesFrom, keptMs, sockets }: Beat): Beaten {
    const { now } = this
    const lastAt = Math.max(...[...this.nodes.values()].map(({ readyAt }) => readyAt))
    const last = this.nodes.size === 0 ? undefined : lastAt
    const known = this.nodes.get(node)
    const readyAt = ready ? now : (known?.readyAt ?? last ?? now)
    const { beats = 0, hasLeft = false } = known ?? {}
    this.nodes.set(node, { beats: beats + 1, hasLeft, seenAt: now, readyAt, sockets })
    if (ready && wasAway && last !== undefined && now - last > outageMs) this.noteOutage({ from: last, to: now })
    this.outages = this.outages.filter(({ to }) => to >= now - keptMs)
    const others = [...this.nodes].filter(([name]) => name !== node)
    return {
      now,
      jumpedMs: this.agreedMs,
      readyAgeMs: ready ? 0 : last && Math.max(0, now - last),
      outages: this.outages.filter(({ from }) => from >= outagesFrom - 1),
      others: others.map(([name, { beats, hasLeft, seenAt, sockets }]) => {
        return { name, beats, hasLeft, ageMs: now - seenAt, ownsSessions: true, sockets }
      }),
    }
  }

  /** As `jumpSql`. */
  agree(jumpedMs: number, known: number): number {
    if (this.agreedMs !== known) return this.agreedMs
    const ms = jumpedMs - known
    this.outages = this.outages.map(({ from, to }) => ({ from: from + ms, to: to + ms }))
    this.agreedMs = jumpedMs
    return jumpedMs
  }

  private noteOutage(outage: Outage): void {
    const same = this.outages.find(({ from }) => from === outage.from)
    const others = this.outages.filter((each) => each !== same)
    this.outages = [...others, { from: outage.from, to: Math.max(outage.to, same?.to ?? 0) }].sort(
      (one, other) => one.from - other.from,
    )
  }

  leave(node: string): void {
    const known = this.nodes.get(node)
    if (known !== undefined) this.nodes.set(node, { ...known, hasLeft: true })
  }
}

function ringEnd(call: LiveCall): number {
  return call.status === 'ringing' ? call.ringExpiresAt : 0
}
