import { afterAll, expect, test } from 'bun:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isLong } from '@ringwire/testkit/long'
import { equivalents, foundElsewhere } from './equivalents.ts'
import { loadRules, survivorsOf } from './mutants.ts'
import type { Mutation } from './mutations.ts'

/** Is the proof worth anything? Every small change of the rules has to make it fail. */

const dir = await mkdtemp(join(tmpdir(), 'ringwire-mutants-'))
afterAll(() => rm(dir, { recursive: true, force: true }))
const rules = await loadRules(dir)
/** Of this many mutants `npm test` takes one, always the same; `npm run test:all` takes all. */
const oneOf = 20
/** A bound for failures: all of them take less than a minute of a core, which others get first. */
const limitMs = 3_000_000
const chosen = rules.mutations.filter(({ name }) => isLong || Bun.hash.crc32(name) % oneOf === 0)
const isEquivalent = ({ name }: Mutation) => name in equivalents || name in foundElsewhere

const namesOf = (mutations: readonly Mutation[]) => mutations.map(({ name }) => name)

test('the rules are found in the syntax trees, and what is called equivalent is one of their mutations', () => {
  expect(rules.mutations.length).toBeGreaterThan(500)
  const names = new Set(rules.mutations.map(({ name }) => name))
  expect(names.size).toBe(rules.mutations.length)
  expect(Object.keys({ ...equivalents, ...foundElsewhere }).filter((name) => !names.has(name))).toEqual([])
})

test(
  'every mutant is found by the tables or in the worlds',
  () => {
    const mutations = chosen.filter((mutation) => !isEquivalent(mutation))
    const survivors = survivorsOf(rules, mutations)
    console.log(
      `${mutations.length} mutants of ${rules.mutations.length}, ${mutations.length - survivors.length} killed`,
    )
    expect(namesOf(survivors)).toEqual([])
  },
  limitMs,
)

if (isLong) {
  test(
    'no mutant that is called equivalent is found',
    () => {
      const mutations = rules.mutations.filter(isEquivalent)
      expect(namesOf(survivorsOf(rules, mutations, true))).toEqual(namesOf(mutations))
    },
    limitMs,
  )
}
