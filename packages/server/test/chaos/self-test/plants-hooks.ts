import { callOf, type Draft, firstOf, isFresh, lose, spots } from './draft.ts'
import type { Plant } from './plant.ts'
import type { Tolerance } from './tolerances.ts'

/** What came to one endpoint, in order. */
type DraftHooks = Draft['hooks'][number]
type DraftHook = DraftHooks[number]

const isTaken = ({ answer }: DraftHook) => answer === 200

/** What came to an endpoint: in this run number 1 failed for some seconds, and both when a node was killed. */
const at = (draft: Draft, endpoint: 0 | 1): DraftHooks => firstOf(draft.hooks.slice(endpoint), `endpoint ${endpoint}`)

/** A delivery that was taken at once and is followed by the next step of its call, which was taken, too. */
function steps(hooks: DraftHooks): readonly [first: DraftHook, second: DraftHook] {
  const ofCalls = Map.groupBy(hooks, ({ call_uuid }) => call_uuid).values()
  return firstOf(
    [...ofCalls].flatMap(([first, second]) => {
      if (first === undefined || second === undefined || !isTaken(first) || !isTaken(second)) return []
      return first.version < second.version ? [[first, second] as const] : []
    }),
    'two webhooks of a call',
  )
}

/** One that failed and was taken when it came again, and the step after it. */
function repeated(hooks: DraftHooks) {
  return firstOf(
    hooks.flatMap((failed) => {
      const again = hooks.find((hook) => hook.id === failed.id && isTaken(hook))
      const next = hooks.find((hook) => hook.call_uuid === failed.call_uuid && hook.version > failed.version)
      return isTaken(failed) || again === undefined || next === undefined ? [] : [{ failed, again, next }]
    }),
    'webhook that failed and came again',
  )
}

function remove(hooks: DraftHooks, fits: (hook: DraftHook) => boolean): void {
  hooks.splice(0, hooks.length, ...hooks.filter((hook) => !fits(hook)))
}

function move(hooks: DraftHooks, moved: DraftHook, before: DraftHook): void {
  hooks.splice(hooks.indexOf(moved), 1)
  hooks.splice(hooks.indexOf(before), 0, moved)
}

/** `change` answers one of the call of which it has to be reported. */
const plant = (name: string, change: (hooks: DraftHooks) => DraftHook, endpoint: 0 | 1 = 1): Plant => ({
  name,
  kind: 'hook',
  recording: 'embedded',
  plant: (draft) => ({ call: change(at(draft, endpoint)).call_uuid }),
})

function loseOne(hooks: DraftHooks): DraftHook {
  const [first] = steps(hooks)
  remove(hooks, ({ id }) => id === first.id)
  return first
}

export const plantsInHooks: readonly Plant[] = [
  plant('a webhook that did not come', loseOne),
  plant('a webhook that came to the other endpoint alone', loseOne, 0),
  plant('the last webhook of a call that did not come', (hooks) => {
    const last = firstOf(hooks.slice(-1), 'webhook')
    remove(hooks, ({ id }) => id === last.id)
    return last
  }),
  plant('a webhook that failed and did not come again', (hooks) => {
    const { failed, again } = repeated(hooks)
    remove(hooks, (hook) => hook === again)
    return failed
  }),
  plant('two webhooks of a call in the other order', (hooks) => {
    const [first, second] = steps(hooks)
    move(hooks, second, first)
    return first
  }),
  plant('a webhook that did not wait for the one before, which had failed', (hooks) => {
    const { again, next } = repeated(hooks)
    move(hooks, next, again)
    return next
  }),
  plant('a webhook under another id when it came again', (hooks) => {
    const { again } = repeated(hooks)
    again.id = 'another'
    return again
  }),
  plant('two webhooks under one id', (hooks) => {
    const [first, second] = steps(hooks)
    second.id = first.id
    return first
  }),
  plant('a webhook of a step that is not stored', (hooks) => {
    const [first] = steps(hooks)
    hooks.push({ ...first, version: 1_000, id: 'more' })
    return first
  }),
  plant('a webhook of a call that is not stored', (hooks) => {
    const more = { ...steps(hooks)[0], call_uuid: 'nowhere', id: 'more' }
    hooks.push(more)
    return more
  }),
  {
    name: 'a notice that was lost while an endpoint failed, until the log was lost',
    kind: 'untold',
    recording: 'embedded',
    plant(draft) {
      const accepted = spots(draft, 'in', ({ frame }) => frame.event === 'call.accepted')
      const { spot, end } = firstOf(
        accepted.flatMap((each) => {
          const next = each.trace.entries.find(
            (entry, i) => i > each.index && entry.kind === 'in' && isFresh(entry.frame) && entry.at > each.at + 4_000,
          )
          return next === undefined ? [] : [{ spot: each, end: next.at }]
        }),
        'answer long before its log was lost',
      )
      lose(spot)
      const { at } = spot
      draft.header.faults.push({ kind: 'endpoint fails (silent)', target: 'endpoint-0', from: at - 100, until: end })
      return { call: callOf(spot), user: spot.trace.user }
    },
  },
]

export const tolerancesOfHooks: readonly Tolerance[] = [
  {
    name: 'webhooks that came again, late',
    recording: 'embedded',
    change(draft) {
      for (const hooks of draft.hooks) hooks.push(...hooks.filter(isTaken).slice(0, 10))
    },
  },
  {
    name: 'webhooks of different calls in any order',
    recording: 'embedded',
    change(draft) {
      for (const hooks of draft.hooks)
        hooks.sort((a, b) => (a.call_uuid < b.call_uuid ? -1 : Number(a.call_uuid > b.call_uuid)))
    },
  },
]
