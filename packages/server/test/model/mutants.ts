import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { explore } from './explore.ts'
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

const entries = ['decide', 'decideInvite', 'checkInvite']

export async function readRules(scratch: string): Promise<Rules> {
  const files = await withImports(['decide.ts', 'invite.ts'])
  const parsed = await parse(
    files.map((file) => join(callDir, file)),
    scratch,
  )
  return {
    texts: new Map(files.map((file, index) => [file, parsed[index]!.text])),
    mutations: mutationsOf(parsed, entries),
  }
}

/** These files and what they import beside them: the rules, and none of what only shows calls. */
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
  return { decide, decideInvite, checkInvite }
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
  }
}

/** All orders of few events, and the same few walks for every mutant. */
const depth = 3
const paths = fc.sample(fc.array(moves, { minLength: 1_000, maxLength: 1_000, size: 'max' }), { numRuns: 5, seed: 1 })
const worlds: readonly ((machine: Machine) => unknown)[] = [
  (machine) => explore(machine, pair, depth, 3),
  ...paths.map((path) => (machine: Machine) => walk(machine, trio, path)),
]
/** The tables; the quick ones first, and last of all every invite in every situation. */
const tables = [...partA].sort((a, b) => weight(a.name) - weight(b.name)).map(({ check }) => check)
function weight(name: string): number {
  return name.includes('every invite') ? 2 : /every verb of|token is over/.test(name) ? 1 : 0
}

/** Whether some check of the model fails on it; the quick and the likely ones come first. */
export function isKilled(mutant: Machine, file: string): boolean {
  const machine = bounded(mutant)
  const [invites, others] = [tables.slice(-1), tables.slice(0, -1)]
  const checks = file === 'invite.ts' ? [...others, ...invites, ...worlds] : [...others, ...worlds, ...invites]
  return checks.some((check) => {
    try {
      check(machine)
      return false
    } catch {
      return true
    }
  })
}
