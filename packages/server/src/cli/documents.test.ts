import { expect, test } from 'bun:test'
import { documents, readDocument } from '@ringwire/testkit/documents'
import type { Surroundings } from './command.ts'
import { findSlip, tableOf } from './command-table.ts'
import { createProgram } from './program.ts'

/* Most commands of the documents are run by the tests of their pages. This holds all of them against the command line, those
   inside a sentence too: a command or an option that was renamed is found wherever it is named. */

// No command runs, so nothing reaches the world outside.
const program = createProgram({} as Surroundings, () => {})
const rows = tableOf(program)
const groups = new Set(rows.flatMap(({ path }) => (path.length > 1 ? [path[0]] : [])))

interface Named {
  readonly page: string
  readonly text: string
  readonly words: readonly string[]
}

/** `npx ringwire …`, `dist/ringwire …` and a command in code; its end is that of the line or the code. */
function commandsOf(page: string): readonly Named[] {
  const found = readDocument(page).matchAll(/(?:npx |dist\/|`|^ *\$ )ringwire ([a-z][^`\n|#)&]*)/gm)
  return [...found].map(({ 1: text = '' }) => ({ page, text, words: text.trim().split(/\s+/) }))
}

// A decision may speak of a command that was not made.
const named = documents()
  .filter((page) => !page.startsWith('docs/decisions/'))
  .flatMap(commandsOf)

test('the documents name commands', () => expect(named.length).toBeGreaterThan(40))

test('every command of the documents is one, with options that it has', () => {
  const wrong = named.flatMap(({ page, text, words }) => {
    const path = rows.find((row) => row.path.every((word, index) => words[index] === word))
    const isGroup = groups.has(words[0])
    const slip = findSlip(program, words)
    if (slip === undefined && (path !== undefined || isGroup)) return []
    return [`${page}: ringwire ${text}: ${slip?.message ?? 'no such command'}`]
  })
  expect(wrong).toEqual([])
})

test('a command with an argument that it needs is shown with it', () => {
  const wrong = named.flatMap(({ page, text, words }) => {
    const row = rows.find(({ path }) => path.length > 1 && path.every((word, index) => words[index] === word))
    // A sentence may speak of a command; who shows an option or an argument shows what has to be there.
    const rest = words.slice(row?.path.length ?? 0)
    if (row === undefined || rest.length === 0) return []
    const missing = row.options.filter(({ long, mandatory }) => mandatory && !rest.some((word) => word === long))
    return missing.map(({ long }) => `${page}: ringwire ${text} lacks ${long}`)
  })
  expect(wrong).toEqual([])
})
