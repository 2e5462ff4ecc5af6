import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Machine } from './machine.ts'
import { inviteFaults } from './mutants-invite.ts'
import { nodeFaults } from './mutants-nodes.ts'
import { callFaults, placeFaults } from './mutants-places.ts'
import { verbFaults } from './mutants-verbs.ts'

/** A fault to be put into the source: its name, the text it replaces (which occurs once), and what it puts there. */
export type Patch = readonly [name: string, find: string, put: string]

export interface Fault {
  readonly file: 'decide.ts' | 'invite.ts' | 'call.ts'
  readonly name: string
  readonly find: string
  readonly put: string
}

const listed = {
  'decide.ts': [...verbFaults, ...placeFaults, ...nodeFaults],
  'invite.ts': inviteFaults,
  'call.ts': callFaults,
} as const

export const faults: readonly Fault[] = Object.entries(listed).flatMap(([file, patches]) =>
  patches.map(([name, find, put]) => ({ file: file as Fault['file'], name, find, put })),
)

const here = dirname(fileURLToPath(import.meta.url))
const callDir = join(here, '../../src/call')
const protocolDir = join(here, '../../../protocol/src')
const files = ['call.ts', 'effects.ts', 'decide.ts', 'invite.ts'] as const
export type Source = Readonly<Record<(typeof files)[number], string>>

export async function readSource(): Promise<Source> {
  const texts = await Promise.all(
    files.map(async (file) => [file, await readFile(join(callDir, file), 'utf8')] as const),
  )
  return Object.fromEntries(texts) as Source
}

/** How often the text that a fault replaces occurs; anything but once means that the list is out of date. */
export function occurrences(source: Source, fault: Fault): number {
  return source[fault.file].split(fault.find).length - 1
}

/** The rules with one fault in them, as modules of their own. */
export async function loadFaulty(source: Source, fault: Fault, dir: string): Promise<Machine> {
  await mkdir(dir, { recursive: true })
  const texts = { ...source, [fault.file]: source[fault.file].replace(fault.find, () => fault.put) }
  for (const file of files) {
    const text = texts[file].replaceAll(/'@ringwire\/protocol\/([^']+)'/g, (_, path) => `'${protocolDir}/${path}.ts'`)
    await writeFile(join(dir, file), text)
  }
  const { decide } = await import(join(dir, 'decide.ts'))
  const { decideInvite, checkInvite } = await import(join(dir, 'invite.ts'))
  return { decide, decideInvite, checkInvite }
}

const condition = /\bif \(|\?(?![.:])|&&|\|\||\.(filter|find|some|every)\(/
/** Conditions that decide nothing: the types ask for them, and no call can be in that state there. */
const forTypesAlone = new Set(["return call.status === 'ringing' ? call : { ...call, calleePlace: place }"])

/** The lines with a condition that no fault touches. */
export function untouchedConditions(source: Source, file: 'decide.ts' | 'invite.ts'): readonly string[] {
  const text = source[file]
  const touched = new Set<number>()
  for (const fault of faults.filter((each) => each.file === file)) {
    const from = text.indexOf(fault.find)
    const line = text.slice(0, from).split('\n').length
    for (let at = 0; at < fault.find.split('\n').length; at++) touched.add(line + at)
  }
  /** The head of a call whose condition begins on the next line belongs to it. */
  return text.split('\n').flatMap((line, index) => {
    const code = line.trim()
    const near = code.endsWith('(') ? [1, 2] : [1]
    const plain = code.startsWith('//') || code.startsWith('*') || code.startsWith('/*') || code.startsWith('readonly')
    const open =
      !plain && condition.test(code) && !near.some((at) => touched.has(index + at)) && !forTypesAlone.has(code)
    return open ? [`${file}:${index + 1}: ${code}`] : []
  })
}
