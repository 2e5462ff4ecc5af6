import type { Hook } from '../recording.ts'
import type { Facts } from './facts.ts'
import type { Report } from './findings.ts'

/** What the endpoint is told of, by the events of `call_events`. */
export const hookOf: ReadonlyMap<string, string> = new Map(
  ['accepted', 'connected', 'ended', 'rejected', 'cancelled', 'missed', 'busy']
    .map((type): [string, string] => [type, `call.${type}`])
    .concat([['invited', 'call.ringing']]),
)

/** Every step of every call at least once, those of a call in order, each under one id of its own [HOOK3]. */
export function checkHooks(hooks: readonly Hook[], facts: Facts, report: Report): void {
  const came = Map.groupBy(hooks, ({ call_uuid }) => call_uuid)
  for (const [call, { events }] of facts) {
    const expected = events.flatMap(({ type, version }) => {
      const told = hookOf.get(type)
      return told === undefined ? [] : [`${version} ${told}`]
    })
    // What comes again comes as late as it likes: the order is that of the first arrivals.
    const first = [...new Set((came.get(call) ?? []).map(nameOf))]
    for (const name of expected) if (!first.includes(name)) report('hook', `${name} did not come`, { call })
    for (const name of first)
      if (!expected.includes(name)) report('hook', `${name} came, and was never stored`, { call })
    const versions = first.map((name) => Number.parseInt(name, 10))
    if (versions.some((version, i) => version < (versions[i - 1] ?? 0)))
      report('hook', `they came as ${first.join(', ')}`, { call })
  }
  for (const call of came.keys())
    if (!facts.has(call)) report('hook', 'a webhook of a call that is not stored', { call })
  const pairs = new Map(hooks.map((hook) => [`${hook.id} ${hook.call_uuid} ${nameOf(hook)}`, hook]))
  for (const [what, keyOf] of [
    ['one id for several events', ({ id }: Hook) => id],
    ['several ids for one event', (hook: Hook) => `${hook.call_uuid} ${nameOf(hook)}`],
  ] as const) {
    for (const [first, ...more] of Map.groupBy(pairs.values(), keyOf).values())
      if (first !== undefined && more.length > 0) report('hook', `${what}: ${nameOf(first)}`, { call: first.call_uuid })
  }
}

const nameOf = ({ version, type }: Hook) => `${version} ${type}`
