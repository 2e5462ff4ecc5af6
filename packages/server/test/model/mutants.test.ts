import { afterAll, expect, test } from 'bun:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { explore } from './explore.ts'
import type { Machine } from './machine.ts'
import { type Fault, faults, loadFaulty, occurrences, readSource, untouchedConditions } from './mutants.ts'
import { partA } from './part-a.ts'
import { pair, trio } from './setups.ts'
import { moves, walk } from './walks.ts'

/** Is the proof worth anything? Every fault that is put into the rules on purpose has to make it fail. */

const dir = await mkdtemp(join(tmpdir(), 'ringwire-faults-'))
afterAll(() => rm(dir, { recursive: true, force: true }))
const source = await readSource()

test('every fault has a name of its own and fits the source once', () => {
  expect(faults.filter((fault) => occurrences(source, fault) !== 1).map(({ name }) => name)).toEqual([])
  const names = faults.map(({ name }) => name)
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
})

test('every condition of decide and invite has a fault', () => {
  expect([...untouchedConditions(source, 'decide.ts'), ...untouchedConditions(source, 'invite.ts')]).toEqual([])
})

function fails(check: () => unknown): boolean {
  try {
    check()
    return false
  } catch {
    return true
  }
}

/** The tables that are likely to find it first come first. */
function failsTables(machine: Machine, file: Fault['file']): boolean {
  const checks = file === 'invite.ts' ? partA.toReversed() : partA
  return checks.some(({ check }) => fails(() => check(machine)))
}

/** All orders of few events, and the same few walks for every fault. */
const depth = 3
const paths = fc.sample(fc.array(moves, { minLength: 1_000, maxLength: 1_000, size: 'max' }), { numRuns: 5, seed: 1 })
function failsWorlds(machine: Machine): boolean {
  return fails(() => explore(machine, pair, depth, 3)) || paths.some((path) => fails(() => walk(machine, trio, path)))
}

test('every fault is found by the tables or in the worlds', async () => {
  const found = { tables: 0, worlds: 0 }
  const survivors: string[] = []
  for (const [index, fault] of faults.entries()) {
    const machine = await loadFaulty(source, fault, join(dir, String(index)))
    const [tables, worlds] = [failsTables(machine, fault.file), failsWorlds(machine)]
    if (tables) found.tables++
    if (worlds) found.worlds++
    if (!tables && !worlds) survivors.push(`${fault.file}: ${fault.name}`)
  }
  const killed = faults.length - survivors.length
  console.log(`${faults.length} mutants, ${killed} killed (tables alone ${found.tables}, worlds alone ${found.worlds})`)
  expect(survivors).toEqual([])
}, 120_000)
