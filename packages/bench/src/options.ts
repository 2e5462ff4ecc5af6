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
  /** Whether the chapters and pictures of the documents are written anew. */
  write: boolean
}

export type Parsed = { ok: true; options: Options } | { ok: false; message: string }

export const USAGE = `npm run bench -- [--only ${MEASUREMENTS.join(',')}] [--seconds N] [--rounds N] [--json FILE] [--plot DIRECTORY] [--write] [--quick]`

const DEFAULT = { seconds: 0.4, rounds: 9, only: MEASUREMENTS }
/** What is quick then. */
const QUICK = {
  seconds: 0.1,
  rounds: 1,
  only: ['relay', 'connect', 'call', 'sip', 'start', 'load', 'tls'],
} as const

export function parseOptions(args: string[]): Parsed {
  const text = { type: 'string' } as const
  try {
    const known = {
      only: text,
      seconds: text,
      rounds: text,
      json: text,
      plot: text,
      write: { type: 'boolean' },
      quick: { type: 'boolean' },
    } as const
    const { values } = parseArgs({ args, options: known })
    const usual = values.quick === true ? QUICK : DEFAULT
    const names: readonly string[] = values.only?.split(',') ?? usual.only
    const unknown = names.filter((name) => !MEASUREMENTS.some((measurement) => measurement === name))
    if (unknown.length > 0) return { ok: false, message: `There is no measurement ${unknown.join(', ')}` }
    const seconds = Number(values.seconds ?? usual.seconds)
    const rounds = Number(values.rounds ?? usual.rounds)
    if (!(seconds > 0 && seconds <= 60)) return { ok: false, message: '--seconds is a number up to 60' }
    if (!(Number.isInteger(rounds) && rounds > 0)) return { ok: false, message: '--rounds is a whole number from 1' }
    const { json = null, plot = null, write = false, quick = false } = values
    if (write && quick) return { ok: false, message: '--write: the figures of --quick say nothing' }
    const only = MEASUREMENTS.filter((name) => names.includes(name))
    return { ok: true, options: { only, seconds, rounds, json, plot, write } }
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : String(error) }
  }
}
