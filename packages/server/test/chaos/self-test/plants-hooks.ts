import { hookOf } from '../check/hooks.ts'
import { type Draft, firstOf } from './draft.ts'
import type { Plant } from './plants.ts'
import type { Tolerance } from './tolerances.ts'

type DraftHooks = NonNullable<Draft['hooks']>

/** As an endpoint of the run would have been told. */
function told(draft: Draft): DraftHooks {
  draft.hooks = draft.events.flatMap(({ call_uuid, version, type: event }) => {
    const type = hookOf.get(event)
    return type === undefined ? [] : [{ call_uuid, version, type, id: `${call_uuid} ${version} ${type}` }]
  })
  return draft.hooks
}

/** Where one is followed by a later one of its call. */
function steps(hooks: DraftHooks): number {
  return firstOf(
    hooks
      .keys()
      .filter((i) => hooks[i]?.call_uuid === hooks[i + 1]?.call_uuid)
      .toArray(),
    'two webhooks of a call',
  )
}

const plant = (name: string, change: (hooks: DraftHooks, at: number) => void): Plant => ({
  name,
  kind: 'hook',
  plant(draft) {
    const hooks = told(draft)
    const at = steps(hooks)
    const call = firstOf(hooks.slice(at), 'webhook').call_uuid
    change(hooks, at)
    return { call }
  },
})

export const plantsInHooks: readonly Plant[] = [
  plant('a webhook that did not come', (hooks, at) => void hooks.splice(at, 1)),
  plant('the last webhook of a call that did not come', (hooks, at) => {
    const call = hooks[at]?.call_uuid
    hooks.splice(
      hooks.findLastIndex(({ call_uuid }) => call_uuid === call),
      1,
    )
  }),
  plant('two webhooks of a call in the other order', (hooks, at) => {
    const [first, second] = hooks.slice(at, at + 2)
    if (first !== undefined && second !== undefined) hooks.splice(at, 2, second, first)
  }),
  plant('a webhook under another id when it came again', (hooks, at) => {
    const [hook] = hooks.slice(at)
    if (hook !== undefined) hooks.push({ ...hook, id: 'another' })
  }),
  plant('two webhooks under one id', (hooks, at) => {
    const [first, second] = hooks.slice(at, at + 2)
    if (first !== undefined && second !== undefined) second.id = first.id
  }),
  plant('a webhook of a step that is not stored', (hooks, at) => {
    const [hook] = hooks.slice(at)
    if (hook !== undefined) hooks.push({ ...hook, version: 1_000, id: 'more' })
  }),
]

export const tolerancesOfHooks: readonly Tolerance[] = [
  {
    name: 'webhooks that came again, late',
    change(draft) {
      const hooks = told(draft)
      hooks.push(...hooks.slice(0, 10))
    },
  },
  {
    name: 'webhooks of different calls in any order',
    change(draft) {
      told(draft).sort((a, b) => a.version - b.version)
    },
  },
]
