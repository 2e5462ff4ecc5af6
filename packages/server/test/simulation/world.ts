import type { Call } from '../../src/call/call.ts'
import type { Timers } from '../../src/ports/clock.ts'
import { check, type Verdict } from '../chaos/check/check.ts'
import type { Report, Violation } from '../chaos/check/findings.ts'
import { memberOf } from '../chaos/collect.ts'
import { type CallRow, type EventRow, type Header, type Recording, type Trace, userNames } from '../chaos/recording.ts'
import { Random } from '../fuzz/random.ts'
import { checkApart } from './apart.ts'
import { createJumps, onOneClock } from './clocks.ts'
import { Cluster, startedAt } from './cluster.ts'
import type { Database } from './database.ts'
import { DecidingBackend } from './deciding-backend.ts'
import { createFaults } from './faults.ts'
import { groupsInTurns } from './groups.ts'
import { type Guest, invite } from './guests.ts'
import { mixOf, usualMix } from './mixes.ts'
import { times } from './node.ts'
import { Host, Scheduler } from './scheduler.ts'

export interface WorldOptions {
  readonly seed: number
  readonly nodes: number
  readonly users: number
  /** How long things break, in simulated seconds. */
  readonly seconds: number
  /** Faults that do not happen, by when they would have been drawn: 0 is the first. */
  readonly without?: readonly number[]
  /**
   * `usual`: the mix of faults of the seeds that were recorded before each seed drew its own. `clocks`: its own, and
   * clocks jump as well. Undefined: its own.
   */
  readonly mix?: 'usual' | 'clocks'
  /**
   * `plain`: people call and answer, and nothing else, as in the seeds that were recorded before they did more. `desk`: they do
   * all that others do, and connect two calls, transfer calls to groups, and call groups that ring in turn.
   */
  readonly people?: 'plain' | 'desk'
}

export interface Outcome {
  readonly recording: Recording
  readonly verdict: Verdict
  /** What each phone saw, under its own name. */
  readonly traces: readonly Trace[]
  /** How many events there were. */
  readonly steps: number
  /** How many faults were drawn. */
  readonly drawn: number
  /** What was likely to break. */
  readonly mix: string
}

/** Tells what clocks do from what else is drawn from a seed. */
const clocksSalt = 0x51ab7e11
/** The same of what people do beside calling and answering, and of who decides on their invites. */
const habitsSalt = 0x2c1b3c6d
/** How often a backend decides on the invites of a world. */
const hookChance = 0.5
/** How often a phone sleeps that loses its network, and for how long at most, in ms. */
const sleepChance = 0.25
const longestSleepMs = 14_000
const tickMs = 200
/** How often some phone's network goes away, for each phone, in ms: on average. */
const networkLossMs = 20_000
/** After the last fault everybody is through with everything long before, in simulated ms. */
const endPatienceMs = 60_000
/** A node looks after its logs every 5 s. */
const lastNewsMs = 6_000

/** Lives a world through, and answers all that was seen. The same seed gives the same world. */
export async function live(options: WorldOptions): Promise<Outcome> {
  const { seed, nodes: count, users, seconds, without = [] } = options
  const random = new Random(seed)
  const scheduler = new Scheduler(random.fork())
  const names = userNames(users)
  const habits = options.people === 'plain' ? undefined : new Random(Math.imul(seed ^ habitsSalt, 0x85ebca6b))
  const isDesk = options.people === 'desk'
  const hook = habits?.chance(hookChance) === true ? new DecidingBackend(names) : undefined
  const cluster = new Cluster(scheduler, random.fork(), names, hook)
  const { timers } = new Host(scheduler, random.fork())
  const at = () => Math.round(scheduler.now * 10) / 10
  const stuck: string[] = []
  let isOver = false
  const mix = options.mix === 'usual' ? usualMix : mixOf(seed)
  const faults = createFaults({ cluster, count, random: random.fork(), timers, at, without, mix })
  const jumps = createJumps({ cluster, random: new Random(Math.imul(seed ^ clocksSalt, 0x85ebca6b)), timers, at })
  const hasJumps = options.mix === 'clocks'
  const people = invite({ scheduler, cluster, count, names, random: random.fork(), timers, at, habits, isDesk })
  const sleeps = habits?.fork()

  async function course(): Promise<void> {
    await Promise.all(Array.from({ length: count }, (_, i) => cluster.start(i)))
    const networks = random.fork()
    let isCalm = false
    timers.every(tickMs, () => {
      for (const { phone } of people) {
        phone.tick()
        if (!isCalm && networks.int(networkLossMs / tickMs) === 0) phone.lose(sleepMs(sleeps))
      }
    })
    for (const { phone, person } of people) {
      phone.connect()
      person.start()
    }
    if (hasJumps) jumps.run().catch(fail)
    await faults.run(seconds * 1_000)
    jumps.stop()
    isCalm = true
    stuck.push(...(await finish(people, cluster, timers)))
    isOver = true
  }

  let failure: unknown
  function fail(error: unknown): void {
    failure = error
    isOver = true
  }
  course().catch(fail)
  await scheduler.runAtOnce(seconds * 1_000 + 10 * endPatienceMs, () => isOver)
  if (failure !== undefined) throw failure
  if (!isOver) stuck.push('the world does not come to an end')
  const more = {
    stuck,
    ...(hook !== undefined && { decides: true as const }),
    ...(isDesk && { inTurns: groupsInTurns(names) }),
    faults: [...faults.records, ...jumps.records],
    bugs: cluster.bugs,
  }
  const { recording, verdict } = judge(people, recordingOf(options, people, cluster.database, more), (seen) =>
    hasJumps ? onOneClock(seen, cluster) : seen,
  )
  const traces = people.map(({ name, trace }) => ({ user: name, entries: trace.entries }))
  return { recording, verdict, traces, steps: scheduler.steps, drawn: faults.drawn(), mix: mix.name }
}

/** For how long a phone that loses its network sleeps, in ms. */
function sleepMs(random: Random | undefined): number {
  return random?.chance(sleepChance) === true ? random.int(longestSleepMs) : 0
}

function recordingOf(
  { seed, nodes, users, seconds }: WorldOptions,
  people: readonly Guest[],
  database: Database,
  more: Required<Pick<Header, 'stuck' | 'faults' | 'bugs'>> & Pick<Header, 'decides' | 'inTurns'>,
): Recording {
  return {
    header: {
      ...({ seed, nodes, store: 'postgresql', redis: 'one', users, durationS: seconds, startedAt } as const),
      resumeWindowMs: times.resumeWindowMs,
      ...{ ...more, crashes: [] },
      apart: [...new Set(people.filter(({ isApart }) => isApart).map(({ person }) => person.userId))],
    },
    traces: tracesOf(people, false),
    tracesApart: people.flatMap(({ isApart, trace }) => (isApart ? trace : [])),
    ...rowsOf(database),
    histories: [],
    hooks: [],
  }
}

/** `onClock`: what was seen, on the clock that the checker goes by. */
function judge(people: readonly Guest[], recorded: Recording, onClock: (seen: Recording) => Recording) {
  const recording = onClock(recorded)
  const { violations, counts } = check(recording)
  const more: Violation[] = []
  const { traces } = onClock({ ...recorded, traces: tracesOf(people, true) })
  const report: Report = (kind, text, where = {}) => more.push({ kind, text, ...where } as Violation)
  checkApart(traces, recording, report)
  return { recording, verdict: { violations: [...violations, ...more], counts } }
}

function tracesOf(people: readonly Guest[], isApart: boolean): Trace[] {
  return people.flatMap((guest) => (guest.isApart === isApart && !guest.isBase ? guest.trace : []))
}

/** Nobody begins anything, all calls end, and everybody hears what there is to hear. Answers who or what does not end. */
async function finish(people: readonly Guest[], { database }: Cluster, timers: Timers): Promise<string[]> {
  const stuck: string[] = []
  async function each(what: string, parts: readonly (readonly [string, () => Promise<unknown>])[]): Promise<void> {
    const open = new Set(parts.map(([name]) => name))
    const all = Promise.all(parts.map(([name, part]) => part().then(() => open.delete(name))))
    await Promise.race([all, timers.sleep(endPatienceMs)])
    stuck.push(...[...open].map((name) => `${name} ${what}`))
  }
  const none = async () => {
    while (database.live().length > 0) await timers.sleep(tickMs)
  }
  await each(
    'still has calls',
    people.map(({ name, person }) => [name, () => person.stop()]),
  )
  await each('holds live calls', [['the database', none]])
  await timers.sleep(lastNewsMs)
  await each(
    'gets no answer',
    people.map(({ name, phone }) => [name, () => phone.settle()]),
  )
  const lastVisit = async (phone: Guest['phone']) => {
    phone.lose()
    await phone.online()
    await phone.settle()
  }
  await each(
    'does not come back',
    people.map(({ name, phone }) => [name, () => lastVisit(phone)]),
  )
  for (const { name, person } of people) stuck.push(...person.open.map((call) => `${name} believes in call ${call}`))
  return stuck
}

/** What few calls have. */
function linksOf(
  { transferred, transferredTo, group }: Call,
  members: readonly string[] | undefined,
): Partial<CallRow> {
  return {
    ...(members !== undefined && { members }),
    ...(group !== undefined && { group: group.name }),
    ...(transferred !== undefined && { transferred_from: transferred.from, transferred_by: transferred.by.userId }),
    ...(transferredTo !== undefined && { transferred_to: transferredTo }),
  }
}

function rowsOf(database: Database): { calls: CallRow[]; events: EventRow[] } {
  const calls = database.all.map(([call]): CallRow => {
    const over = 'endedAt' in call ? call : undefined
    const answered = 'acceptedAt' in call ? call : undefined
    return {
      call_uuid: call.callUuid,
      caller: call.caller.userId,
      callee: call.callee.userId,
      version: call.version,
      status: call.status,
      started_at: call.startedAt,
      ring_expires_at: call.ringExpiresAt,
      accepted_at: answered?.acceptedAt ?? null,
      connected_at: answered?.connectedAt ?? null,
      ended_at: over?.endedAt ?? null,
      end_reason: over?.endReason ?? null,
      ...linksOf(call, database.rungBy(call)),
    }
  })
  const events = database.all.flatMap(([call, all]) =>
    all.map(({ type, at, by, notices }, i): EventRow => {
      return {
        ...memberOf(type, notices),
        call_uuid: call.callUuid,
        version: i + 1,
        type,
        at,
        by_user: by?.userId ?? null,
        by_session: by?.sessionId ?? null,
      }
    }),
  )
  return { calls, events }
}
