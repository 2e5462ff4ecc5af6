import type { Hook } from '../recording.ts'
import type { CallFacts, Facts } from './facts.ts'
import type { Report } from './findings.ts'

/** The events for an endpoint, by the events of `call_events`. */
export const hookOf: ReadonlyMap<string, string> = new Map(
  ['accepted', 'connected', 'ended', 'rejected', 'cancelled', 'missed', 'busy']
    .map((type): [string, string] => [type, `call.${type}`])
    .concat([['invited', 'call.ringing']]),
)

/** An event at one of the endpoints, the first of which is number 0. */
type Arrival = Hook & { readonly endpoint: number }

/**
 * Every step of every call is taken by each endpoint at least once, those of a call in order, each under one id of its own
 * [HOOK3]. What an endpoint failed it has not taken.
 */
export function checkHooks(endpoints: readonly (readonly Hook[])[], facts: Facts, report: Report): void {
  for (const [endpoint, hooks] of endpoints.entries()) {
    const came = Map.groupBy(hooks, ({ call_uuid }) => call_uuid)
    for (const [call, fact] of facts)
      for (const text of problemsOf(came.get(call) ?? [], fact))
        report('hook', `endpoint-${endpoint}: ${text}`, { call })
    for (const call of came.keys())
      if (!facts.has(call)) report('hook', `endpoint-${endpoint}: a webhook of a call that is not stored`, { call })
  }
  checkIds(
    endpoints.flatMap((hooks, endpoint) => hooks.map((hook) => ({ ...hook, endpoint }))),
    report,
  )
}

/** What is wrong with what came of one call to one endpoint, in the order in which it came. */
function problemsOf(hooks: readonly Hook[], { events }: CallFacts): string[] {
  const expected = events.flatMap(({ type, version }) => {
    const told = hookOf.get(type)
    return told === undefined ? [] : [{ version, name: `${version} ${told}` }]
  })
  const problems: string[] = []
  const came = new Set<string>()
  const taken = new Set<string>()
  for (const hook of hooks) {
    const name = nameOf(hook)
    // Later hooks wait until it was taken; a hook that was taken may come again as late as it likes.
    const overtaken = expected.filter((step) => step.version < hook.version && !taken.has(step.name))
    if (overtaken.length > 0) problems.push(`${name} came before ${overtaken.map((step) => step.name)} was taken`)
    came.add(name)
    if (hook.answer === 200) taken.add(name)
  }
  for (const { name } of expected)
    if (!taken.has(name)) problems.push(`${name} ${came.has(name) ? 'failed, and did not come again' : 'did not come'}`)
  for (const name of came)
    if (!expected.some((step) => step.name === name)) problems.push(`${name} came, and was never stored`)
  return problems
}

function checkIds(arrivals: readonly Arrival[], report: Report): void {
  const eventOf = (one: Arrival) => `${one.endpoint} ${one.call_uuid} ${nameOf(one)}`
  const pairs = new Map(arrivals.map((one) => [`${one.id} ${eventOf(one)}`, one]))
  for (const [what, keyOf] of [
    ['one id for several events', ({ id }: Arrival) => id],
    ['several ids for one event', eventOf],
  ] as const) {
    for (const [first, ...more] of Map.groupBy(pairs.values(), keyOf).values())
      if (first !== undefined && more.length > 0) report('hook', `${what}: ${nameOf(first)}`, { call: first.call_uuid })
  }
}

const nameOf = ({ version, type }: Hook) => `${version} ${type}`
