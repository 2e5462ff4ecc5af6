import { type FaultRecord, type Hook, isRelay, type Recording } from '../recording.ts'
import { isLong } from '../relay-text.ts'
import type { Loss } from './losses.ts'
import { isVolatile, outcomeOf, type Reading } from './reading.ts'

/** How much of everything there was. */
export interface Counts {
  readonly calls: Readonly<Record<string, number>>
  readonly transitions: { readonly stored: number; readonly acknowledged: number; readonly maybe: number }
  readonly relays: {
    readonly acknowledged: number
    readonly maybe: number
    readonly volatile: number
    readonly arrived: number
    /** Of those the ones that say how long they are. */
    readonly long: number
  }
  readonly resumes: { readonly recovered: number; readonly notRecovered: number; readonly resets: number }
  /** Logs that were lost, by what explains it. */
  readonly losses: Readonly<Record<string, number>>
  readonly requests: {
    readonly asked: number
    readonly sentAgain: number
    readonly errors: Readonly<Record<string, number>>
  }
  /** Calls that a phone went on with, which another one of its person had. */
  readonly takes: number
  readonly faults: Readonly<Record<string, number>>
  readonly hooks: {
    readonly arrived: number
    /** Of those the ones that came again. */
    readonly again: number
    /** Failed by an endpoint. */
    readonly failed: number
    /** Under way without an answer when their node was killed for that. */
    readonly cutOff: number
  }
}

export function countsOf(
  { calls, events, header, traces, hooks }: Recording,
  readings: readonly Reading[],
  readingsApart: readonly Reading[],
  losses: readonly Loss[],
): Counts {
  const requests = readings.flatMap((reading) => reading.requests)
  const outcomes = (of: typeof requests, outcome: string) => of.filter((each) => outcomeOf(each) === outcome).length
  const relays = requests.filter(({ frame }) => isRelay(frame))
  const transitions = requests.filter(({ frame }) => frame.event.startsWith('call.') && frame.event !== 'call.alerting')
  const states = readings.flatMap((reading) => reading.states.slice(1))
  const ofKind = (kind: string) => states.filter((state) => state.kind === kind).length
  const pushes = readings.flatMap(({ stretches }) => stretches.flatMap((stretch) => stretch.pushes))
  const arrived = pushes.filter(({ frame }) => isRelay(frame))
  const out = traces.flatMap(({ entries }) => entries.filter(({ kind }) => kind === 'out')).length
  return {
    calls: tally(calls.map(({ status }) => status)),
    transitions: {
      stored: events.length,
      acknowledged: outcomes(transitions, 'done'),
      maybe: outcomes(transitions, 'maybe'),
    },
    relays: {
      acknowledged: outcomes(relays, 'done'),
      maybe: outcomes(relays, 'maybe'),
      volatile: relays.filter(({ replies }) => replies.some(({ frame }) => isVolatile(frame))).length,
      arrived: arrived.length,
      long: arrived.filter(({ frame }) => isLong(frame)).length,
    },
    resumes: { recovered: ofKind('recovered'), notRecovered: ofKind('new'), resets: ofKind('reset') },
    losses: tally(losses.map(({ reason }) => reason ?? 'nothing')),
    requests: {
      asked: requests.length,
      sentAgain: out - requests.length,
      errors: tally(requests.flatMap(({ replies }) => replies.flatMap(({ frame }) => frame.error?.code ?? []))),
    },
    takes: outcomes(
      readingsApart.flatMap((reading) => reading.requests.filter(({ frame }) => frame.event === 'call.take')),
      'done',
    ),
    faults: tally(header.faults.map(({ kind }) => kind)),
    hooks: hookCounts(hooks.flat(), header.faults),
  }
}

function hookCounts(hooks: readonly Hook[], faults: readonly FaultRecord[]): Counts['hooks'] {
  const kills = faults.filter(({ kind }) => kind === 'node killed before delivery')
  return {
    arrived: hooks.length,
    again: hooks.length - new Set(hooks.map(({ id }) => id)).size,
    failed: hooks.filter(({ answer }) => answer !== 200).length,
    cutOff: hooks.filter(
      ({ answer, at }) => answer === 'hang' && kills.some(({ from, until }) => from <= at && at < until),
    ).length,
  }
}

function tally(names: readonly string[]): Record<string, number> {
  const groups = Map.groupBy(names, (name) => name)
  return Object.fromEntries([...groups].map(([name, all]) => [name, all.length] as const).sort((a, b) => b[1] - a[1]))
}
