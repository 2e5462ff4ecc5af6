// The command line of `npm run bench`.
import { parseArgs } from 'node:util'
import { MEASUREMENTS, type MeasurementName } from './measurement.ts'

export interface Options {
  only: MeasurementName[]
  seconds: number
  rounds: number
  json: string | null
  /** The directory for the pictures. */
  plot: string | null
}

export type Parsed = { ok: true; options: Options } | { ok: false; message: string }

export const USAGE = `npm run bench -- [--only ${MEASUREMENTS.join(',')}] [--seconds N] [--rounds N] [--json FILE] [--plot DIRECTORY]`

const DEFAULT_SECONDS = 0.4
const DEFAULT_ROUNDS = 9

export function parseOptions(args: string[]): Parsed {
  const text = { type: 'string' } as const
  try {
    const known = { only: text, seconds: text, rounds: text, json: text, plot: text }
    const { values } = parseArgs({ args, options: known })
    const names = values.only?.split(',') ?? [...MEASUREMENTS]
    const unknown = names.filter((name) => !MEASUREMENTS.some((measurement) => measurement === name))
    if (unknown.length > 0) return { ok: false, message: `There is no measurement ${unknown.join(', ')}` }
    const seconds = Number(values.seconds ?? DEFAULT_SECONDS)
    const rounds = Number(values.rounds ?? DEFAULT_ROUNDS)
    if (!(seconds > 0 && seconds <= 60)) return { ok: false, message: '--seconds is a number up to 60' }
    if (!(Number.isInteger(rounds) && rounds > 0)) return { ok: false, message: '--rounds is a whole number from 1' }
    const only = MEASUREMENTS.filter((name) => names.includes(name))
    return { ok: true, options: { only, seconds, rounds, json: values.json ?? null, plot: values.plot ?? null } }
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : String(error) }
  }
}
