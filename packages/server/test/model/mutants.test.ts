import { afterAll, expect, test } from 'bun:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isLong } from '@ringwire/testkit/long'
import { equivalents, foundElsewhere } from './equivalents.ts'
import { isKilled, loadMutant, readRules } from './mutants.ts'
import type { Mutation } from './mutations.ts'

/** Is the proof worth anything? Every small change of the rules has to make it fail. */

const dir = await mkdtemp(join(tmpdir(), 'ringwire-mutants-'))
afterAll(() => rm(dir, { recursive: true, force: true }))
const rules = await readRules(dir)
/** Of this many mutants `npm test` takes one, always the same; `npm run test:all` takes all. */
const oneOf = 20
/** A bound for failures: all of them take a few minutes of a core, which others get first. */
const limitMs = 3_000_000
const chosen = rules.mutations.filter(({ name }) => isLong || Bun.hash.crc32(name) % oneOf === 0)
const isEquivalent = ({ name }: Mutation) => name in equivalents || name in foundElsewhere

async function survivorsOf(mutations: readonly Mutation[], isHasty = false): Promise<string[]> {
  const survivors: string[] = []
  for (const mutation of mutations) {
    const folder = join(dir, String(rules.mutations.indexOf(mutation)))
    if (!isKilled(await loadMutant(rules, mutation, folder), isHasty)) survivors.push(mutation.name)
    await rm(folder, { recursive: true })
  }
  return survivors
}

test('the rules are found in the syntax trees, and what is called equivalent is one of their mutations', () => {
  expect(rules.mutations.length).toBeGreaterThan(500)
  const names = new Set(rules.mutations.map(({ name }) => name))
  expect(names.size).toBe(rules.mutations.length)
  expect(Object.keys({ ...equivalents, ...foundElsewhere }).filter((name) => !names.has(name))).toEqual([])
})

test(
  'every mutant is found by the tables or in the worlds',
  async () => {
    const mutations = chosen.filter((mutation) => !isEquivalent(mutation))
    const survivors = await survivorsOf(mutations)
    console.log(
      `${mutations.length} mutants of ${rules.mutations.length}, ${mutations.length - survivors.length} killed`,
    )
    expect(survivors).toEqual([])
  },
  limitMs,
)

if (isLong) {
  test(
    'no mutant that is called equivalent is found',
    async () => {
      const mutations = rules.mutations.filter(isEquivalent)
      expect(await survivorsOf(mutations, true)).toEqual(mutations.map(({ name }) => name))
    },
    limitMs,
  )
}
