// The command line of `npm run simulate`.
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import type { WorldOptions } from './world.ts'

export interface SimulateOptions {
  /** Each seed from `from` on, so many of them. */
  readonly from: number
  readonly seeds: number
  readonly world: Omit<WorldOptions, 'seed'>
  /** How many threads live worlds at once. */
  readonly workers: number
  /** The file for the recording of the first seed that fails. */
  readonly record: string | null
}

export type Parsed =
  | { readonly ok: true; readonly options: SimulateOptions }
  | { readonly ok: false; readonly message: string }

export const usage = `npm run simulate -- [--seeds N] [--from SEED] [--seconds S] [--nodes N] [--users N] [--workers N] [--mix usual|own|clocks]
  [--people all|plain|desk] [--record FILE]`

export const defaultWorld = { nodes: 3, users: 4, seconds: 60 } as const
const mostSeed = 2 ** 32 - 1

export function parseOptions(args: string[]): Parsed {
  const text = { type: 'string' } as const
  const names = {
    seeds: text,
    from: text,
    seconds: text,
    nodes: text,
    users: text,
    workers: text,
    mix: text,
    people: text,
    record: text,
  }
  let values: Partial<Record<keyof typeof names, string>>
  try {
    values = parseArgs({ args, options: names }).values
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : String(error) }
  }
  const numbers = {
    seeds: Number(values.seeds ?? 100),
    from: Number(values.from ?? 1),
    seconds: Number(values.seconds ?? defaultWorld.seconds),
    nodes: Number(values.nodes ?? defaultWorld.nodes),
    users: Number(values.users ?? defaultWorld.users),
    workers: Number(values.workers ?? availableParallelism()),
  }
  for (const [name, [least, most]] of Object.entries(bounds)) {
    const value = numbers[name as keyof typeof bounds]
    if (!Number.isInteger(value) || value < least || value > most)
      return {
        ok: false,
        message: `--${name} is a whole number from ${least} to ${most}, not ${values[name as keyof typeof bounds]}`,
      }
  }
  const { mix = 'own' } = values
  if (mix !== 'own' && mix !== 'usual' && mix !== 'clocks')
    return { ok: false, message: `--mix is usual, own or clocks, not ${mix}` }
  const { people = 'all' } = values
  if (people !== 'all' && people !== 'plain' && people !== 'desk')
    return { ok: false, message: `--people is all, plain or desk, not ${people}` }
  const { seeds, from, workers, ...sizes } = numbers
  const of: Pick<WorldOptions, 'mix' | 'people'> = {
    ...(mix !== 'own' && { mix }),
    ...(people !== 'all' && { people }),
  }
  const world = { ...sizes, ...of }
  return { ok: true, options: { seeds, from, workers, world, record: values.record ?? null } }
}

const bounds = {
  seeds: [1, 1_000_000],
  from: [0, mostSeed],
  seconds: [1, 3_600],
  nodes: [2, 9],
  users: [2, 100],
  workers: [1, 64],
} as const
