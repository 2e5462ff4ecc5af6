// The command line of `npm run chaos`.
import { parseArgs } from 'node:util'
import type { RedisKind, StoreKind } from './recording.ts'

export interface RunOptions {
  readonly durationS: number
  readonly seed: number
  readonly nodes: number
  readonly store: StoreKind
  readonly redis: RedisKind
  readonly users: number
  /** A backend decides on each invite [HOOK5]. */
  readonly decides?: true
  /** The file for the whole recording, whatever the verdict. */
  readonly record: string | null
}

export type Task =
  | { readonly kind: 'run'; readonly options: RunOptions }
  | { readonly kind: 'self-test' }
  | { readonly kind: 'check'; readonly file: string }

export type Parsed = { readonly ok: true; readonly task: Task } | { readonly ok: false; readonly message: string }

export const usage = `npm run chaos -- [--duration SECONDS] [--seed N] [--nodes N] [--store postgresql|sqlite]
  [--redis one|cluster] [--users N] [--decides] [--record FILE]
npm run chaos -- --self-test
npm run chaos -- --check FILE`

const defaults = { durationS: 60, nodes: 3, store: 'postgresql', redis: 'one', users: 200 } as const

export function parseOptions(args: string[], freshSeed: number): Parsed {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean' } as const
  try {
    const { values } = parseArgs({
      args,
      options: {
        ...{ duration: text, seed: text, nodes: text, store: text, redis: text, users: text, record: text },
        ...{ check: text, 'self-test': flag, decides: flag },
      },
    })
    if (values['self-test'] === true) return { ok: true, task: { kind: 'self-test' } }
    if (values.check !== undefined) return { ok: true, task: { kind: 'check', file: values.check } }
    const { store = defaults.store, redis = defaults.redis } = values
    if (!isStoreKind(store)) return { ok: false, message: '--store is postgresql or sqlite' }
    if (!isRedisKind(redis)) return { ok: false, message: '--redis is one or cluster' }
    const options: RunOptions = {
      store,
      redis,
      durationS: Number(values.duration ?? defaults.durationS),
      seed: Number(values.seed ?? freshSeed),
      nodes: Number(values.nodes ?? defaults.nodes),
      users: Number(values.users ?? defaults.users),
      record: values.record ?? null,
      ...(values.decides === true && { decides: true }),
    }
    const message = problemOf(options)
    return message === undefined ? { ok: true, task: { kind: 'run', options } } : { ok: false, message }
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : String(error) }
  }
}

function isStoreKind(text: string): text is StoreKind {
  return text === 'postgresql' || text === 'sqlite'
}

function isRedisKind(text: string): text is RedisKind {
  return text === 'one' || text === 'cluster'
}

function problemOf({ durationS, seed, nodes, store, redis, users }: RunOptions): string | undefined {
  const isCount = (value: number, least: number, most: number) =>
    Number.isInteger(value) && value >= least && value <= most
  if (!(durationS > 0 && durationS <= 86_400)) return '--duration is a number of seconds, up to 86400'
  if (!isCount(seed, 0, 2 ** 32 - 1)) return '--seed is a whole number from 0 to 4294967295'
  if (!isCount(nodes, 1, 9)) return '--nodes is a whole number from 1 to 9'
  if (store === 'sqlite' && nodes !== 1) return '--store sqlite is of one node: --nodes 1'
  if (redis === 'cluster' && nodes === 1) return '--redis cluster is of several nodes'
  if (!isCount(users, 2, 5_000)) return '--users is a whole number from 2 to 5000'
  return undefined
}
