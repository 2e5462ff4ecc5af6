import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { explore } from './explore.ts'
import { checkInvites } from './invite-check.ts'
import type { Machine } from './machine.ts'
import { type Mutation, mutationsOf, parse, withChoices } from './mutations.ts'
import { partA } from './part-a.ts'
import { pair, trio } from './setups.ts'
import { moves, walk } from './walks.ts'

const here = dirname(fileURLToPath(import.meta.url))
const callDir = join(here, '../../src/call')
const protocolDir = join(here, '../../../protocol/src')

/** The rules of calls with every mutation of them: which one they have is chosen while they run. */
export interface Rules {
  readonly mutations: readonly Mutation[]
  /** As the source has it, while no mutation is chosen. */
  readonly machine: Machine
  readonly choice: Choice
}

interface Choice {
  choose(mutation: Mutation | undefined): void
  /** Watches the places of these mutations, and of no others. */
  watch(mutations: Iterable<Mutation>): void
  /** A place that is not watched any more. */
  unwatch(mutation: Mutation): void
  /** The mutations whose places are watched, and the rules have come by them since the last call. */
  takePassed(): readonly Mutation[]
}

const entries = ['decide', 'decideInvite', 'checkInvite', 'decideLinked', 'decideTransfer', 'decideJoin']

export async function loadRules(dir: string): Promise<Rules> {
  const files = await withImports(['decide.ts', 'invite.ts', 'linked.ts', 'transfer.ts', 'join.ts'])
  const parsed = await parse(
    files.map((file) => join(callDir, file)),
    dir,
  )
  const mutations = mutationsOf(parsed, entries)
  const numbers = new Map(mutations.map((mutation, number) => [mutation, number]))
  const rulesDir = join(dir, 'rules')
  await mkdir(rulesDir)
  await writeFile(join(rulesDir, 'chosen.ts'), chosenText(mutations.length))
  for (const [index, file] of files.entries()) {
    const own = mutations.filter((mutation) => mutation.file === file)
    const text = withChoices(parsed[index]!.text, own, (mutation) => `isChosen(${numbers.get(mutation)})`)
    const resolved = text.replaceAll(/'@ringwire\/protocol\/([^']+)'/g, `'${protocolDir}/$1.ts'`)
    await writeFile(join(rulesDir, file), `import { isChosen } from './chosen.ts'\n${resolved}`)
  }
  const { choose, watch, unwatch, takePassed } = await import(join(rulesDir, 'chosen.ts'))
  const numberOf = (mutation: Mutation) => numbers.get(mutation)
  return {
    mutations,
    machine: await importMachine(rulesDir),
    choice: {
      choose: (mutation) => choose(mutation === undefined ? -1 : numberOf(mutation)),
      watch: (watched) => watch([...watched].map(numberOf)),
      unwatch: (mutation) => unwatch(numberOf(mutation)),
      takePassed: () => takePassed().map((number: number) => mutations[number]),
    },
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

/** The module that the rules ask at every step: each place is noted once a turn, and never where it is not watched. */
const chosenText = (count: number) => `
const never = ${2 ** 31 - 1}
const turns = new Int32Array(${count}).fill(never)
let [chosen, turn, passed] = [-1, 1, [] as number[]]
export function isChosen(number: number): boolean {
  if (turns[number]! < turn) {
    turns[number] = turn
    passed.push(number)
  }
  return number === chosen
}
export function choose(number: number): void {
  chosen = number
}
export function watch(numbers: number[]): void {
  turns.fill(never)
  for (const number of numbers) turns[number] = 0
}
export function unwatch(number: number): void {
  turns[number] = never
}
export function takePassed(): number[] {
  const taken = passed
  if (taken.length > 0) passed = []
  turn++
  return taken
}
`

async function importMachine(dir: string): Promise<Machine> {
  const { decide } = await import(join(dir, 'decide.ts'))
  const { decideInvite, checkInvite } = await import(join(dir, 'invite.ts'))
  const { decideLinked } = await import(join(dir, 'linked.ts'))
  const { decideTransfer } = await import(join(dir, 'transfer.ts'))
  const { decideJoin } = await import(join(dir, 'join.ts'))
  return { decide, decideInvite, checkInvite, decideLinked, decideTransfer, decideJoin }
}

type Ask = (...given: readonly never[]) => unknown

/** The same machine; `ask` stands around each of its functions. */
function around(machine: Machine, ask: (rule: Ask, given: readonly never[]) => unknown): Machine {
  const rules = Object.entries(machine as unknown as Record<string, Ask>)
  const asked = rules.map(([name, rule]) => [name, (...given: readonly never[]) => ask(rule, given)])
  return Object.fromEntries(asked)
}

/** More questions than any check asks of rules that are right: with such a mutation something goes round in circles. */
const mostQuestions = 3_000_000

function bounded(machine: Machine): Machine {
  let left = mostQuestions
  return around(machine, (rule, given) => {
    if (--left < 0) throw new Error('it does not come to an end')
    return rule(...given)
  })
}

type Check = (machine: Machine) => unknown

/** All orders of few events, and the same few walks for every mutant. */
const depth = 3
const paths = fc.sample(fc.array(moves, { minLength: 1_000, maxLength: 1_000, size: 'max' }), { numRuns: 5, seed: 1 })
const walks = paths.map(
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
/** The cheap ones first: few mutants are left for the others. */
const checks: readonly Check[] = [
  ...[...linked, ...quick, ...walks, someInvites],
  (machine) => explore(machine, pair, depth, 3),
  ...slow,
]

/** For no more mutants than these, a check of each costs less than the source and a comparison. */
const few = 2

/**
 * The mutants that no check of the model finds. A mutant that answers each question of a check as the source does passes it, as the
 * source does. One that answers a question otherwise has to be found by the check itself.
 * `isHasty`: of the table of invites some cases are enough.
 */
export function survivorsOf(rules: Rules, mutations: readonly Mutation[], isHasty = false): readonly Mutation[] {
  const survivors = new Set(mutations)
  for (const check of isHasty ? checks : [...checks, ...invites]) {
    if (survivors.size === 0) break
    const suspects = survivors.size > few ? differingIn(check, rules, survivors) : [...survivors]
    for (const mutation of suspects) if (isKilledBy(check, rules, mutation)) survivors.delete(mutation)
  }
  return [...survivors]
}

function isKilledBy(check: Check, { machine, choice }: Rules, mutation: Mutation): boolean {
  choice.choose(mutation)
  try {
    check(bounded(machine))
    return false
  } catch {
    return true
  } finally {
    choice.choose(undefined)
  }
}

/** Which of these mutations answer a question otherwise that the check asks of the source. */
function differingIn(check: Check, { machine, choice }: Rules, mutations: Iterable<Mutation>): readonly Mutation[] {
  const differing: Mutation[] = []
  let last: { readonly rule: unknown; readonly given: readonly unknown[] } | undefined
  const compared = around(machine, (rule, given) => {
    // The checks ask everything twice.
    if (last?.rule === rule && given.every((part, index) => part === last?.given[index])) return rule(...given)
    last = { rule, given }
    choice.takePassed()
    const answer = rule(...given)
    for (const mutation of choice.takePassed()) {
      choice.choose(mutation)
      const isOther = !isSame(() => rule(...given), answer, given)
      choice.choose(undefined)
      if (!isOther) continue
      choice.unwatch(mutation)
      differing.push(mutation)
    }
    return answer
  })
  choice.watch(mutations)
  check(compared)
  choice.watch([])
  return differing
}

/** The same parts of the question come back as they are: the checks look whether a call is the one that was given. */
function isSame(ask: () => unknown, answer: unknown, given: readonly unknown[]): boolean {
  try {
    const other = ask()
    if (!Bun.deepEquals(other, answer, true)) return false
    const callOf = (value: unknown) => (value as { readonly call?: unknown } | undefined)?.call
    return given.every((part) => (callOf(other) === part) === (callOf(answer) === part))
  } catch {
    return false
  }
}
