import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { explore } from './explore.ts'
import { checkInvites } from './invite-check.ts'
import type { Machine } from './machine.ts'
import { type Mutation, mutationsOf, parse } from './mutations.ts'
import { partA } from './part-a.ts'
import { pair, trio } from './setups.ts'
import { moves, walk } from './walks.ts'

const here = dirname(fileURLToPath(import.meta.url))
const callDir = join(here, '../../src/call')
const protocolDir = join(here, '../../../protocol/src')

/** The rules of calls: the texts of their files, and every mutation of them. */
export interface Rules {
  readonly texts: ReadonlyMap<string, string>
  readonly mutations: readonly Mutation[]
}

const entries = ['decide', 'decideInvite', 'checkInvite', 'decideLinked', 'decideTransfer', 'decideJoin']

export async function readRules(scratch: string): Promise<Rules> {
  const files = await withImports(['decide.ts', 'invite.ts', 'linked.ts', 'transfer.ts', 'join.ts'])
  const parsed = await parse(
    files.map((file) => join(callDir, file)),
    scratch,
  )
  return {
    texts: new Map(files.map((file, index) => [file, parsed[index]!.text])),
    mutations: mutationsOf(parsed, entries),
  }
}

/** These files and the files that they import: the rules, and no code that only shows calls. */
async function withImports(files: readonly string[]): Promise<string[]> {
  const found = new Set(files)
  for (const file of found) {
    const text = await readFile(join(callDir, file), 'utf8')
    for (const [, imported = ''] of text.matchAll(/from '\.\/([^']+)'/g)) found.add(imported)
  }
  return [...found]
}

/** The rules with one mutation in them, as modules of their own. */
export async function loadMutant({ texts }: Rules, mutation: Mutation, dir: string): Promise<Machine> {
  await mkdir(dir, { recursive: true })
  for (const [file, text] of texts) {
    const { from, to, put } = file === mutation.file ? mutation : { from: 0, to: 0, put: '' }
    const mutated = text.slice(0, from) + put + text.slice(to)
    const resolved = mutated.replaceAll(/'@ringwire\/protocol\/([^']+)'/g, `'${protocolDir}/$1.ts'`)
    await writeFile(join(dir, file), resolved)
  }
  const { decide } = await import(join(dir, 'decide.ts'))
  const { decideInvite, checkInvite } = await import(join(dir, 'invite.ts'))
  const { decideLinked } = await import(join(dir, 'linked.ts'))
  const { decideTransfer } = await import(join(dir, 'transfer.ts'))
  const { decideJoin } = await import(join(dir, 'join.ts'))
  return { decide, decideInvite, checkInvite, decideLinked, decideTransfer, decideJoin }
}

/** More questions than any check asks of rules that are right: with such a mutation something goes round in circles. */
const mostQuestions = 3_000_000

function bounded(machine: Machine): Machine {
  let left = mostQuestions
  const count = () => {
    if (--left < 0) throw new Error('it does not come to an end')
  }
  return {
    ...machine,
    decide(...all) {
      count()
      return machine.decide(...all)
    },
    decideInvite(...all) {
      count()
      return machine.decideInvite(...all)
    },
    decideLinked(...all) {
      count()
      return machine.decideLinked(...all)
    },
  }
}

type Check = (machine: Machine) => unknown

/** All orders of few events, and the same few walks for every mutant. */
const depth = 3
const paths = fc.sample(fc.array(moves, { minLength: 1_000, maxLength: 1_000, size: 'max' }), { numRuns: 5, seed: 1 })
const [firstWalk, ...walks] = paths.map(
  (path): Check =>
    (machine) =>
      walk(machine, trio, path),
)
/**
 * Tables of groups and transfers, which take milliseconds; those that take a moment; those that take a second; every invite in
 * every situation, which takes many.
 */
const [linked, quick, slow, invites] = [0, 1, 2, 3].map((weight) =>
  partA.filter(({ name }) => weightOf(name) === weight).map(({ check }): Check => check),
) as [Check[], Check[], Check[], Check[]]
function weightOf(name: string): number {
  if (name.includes('every invite')) return 3
  if (/every verb of every session|token is over|verdict of|takes the place|arrivals take/.test(name)) return 2
  return /GROUP1|XFER1/.test(name) ? 0 : 1
}
/** A prime: no loop of the table is in step with it. */
const someInvites: Check = (machine) => checkInvites(machine, 97)
/** A walk kills three of four, but knows no groups and no transfers. The others come after it by what they cost. */
const checks: readonly Check[] = [
  ...linked,
  ...(firstWalk === undefined ? [] : [firstWalk]),
  ...[...quick, someInvites, ...walks],
  (machine) => explore(machine, pair, depth, 3),
  ...slow,
]

/** Whether some check of the model fails on it. `isHasty`: of the table of invites some cases are enough. */
export function isKilled(mutant: Machine, isHasty = false): boolean {
  const machine = bounded(mutant)
  return (isHasty ? checks : [...checks, ...invites]).some((check) => {
    try {
      check(machine)
      return false
    } catch {
      return true
    }
  })
}
