import { expect, test } from 'bun:test'
import { clientApiPage, declarationsOf } from './client-api.ts'

const source = `import { useless } from './elsewhere.ts'

/** One line: \`{}\` and {1,64} stand in it. */
export interface Options {
  /** First. */
  readonly first: string

  run(): void
}

export type Name = 'a' | 'b'

/**
 * Two
 * lines.
 */
export type Union =
  /** One. */
  | { readonly name: 'one' }
  | 'two'
const hidden = 1

export const codes = {
  A: 'A',
} as const

/** Overloaded. */
export function call(of: string): string
export function call(of: number): number
export function call(of: string | number): string | number {
  return of
}

export async function notShown(): Promise<void> {}

export function make(
  first: string,
  second: { x: number } = {},
): {
  readonly made: boolean
} {
  return { made: Boolean(first) && second !== undefined }
}
`

test('declarations are found with what stands above them, and without what implements them', () => {
  expect(declarationsOf(source)).toEqual([
    {
      name: 'Options',
      description: 'One line: `{}` and {1,64} stand in it.',
      code: 'interface Options {\n  /** First. */\n  readonly first: string\n\n  run(): void\n}',
    },
    { name: 'Name', description: '', code: "type Name = 'a' | 'b'" },
    {
      name: 'Union',
      description: 'Two lines.',
      code: "type Union =\n  /** One. */\n  | { readonly name: 'one' }\n  | 'two'",
    },
    { name: 'codes', description: '', code: "const codes = {\n  A: 'A',\n} as const" },
    {
      name: 'call',
      description: 'Overloaded.',
      code: 'function call(of: string): string\nfunction call(of: number): number',
    },
    {
      name: 'make',
      description: '',
      code: 'function make(\n  first: string,\n  second: { x: number } = {},\n): {\n  readonly made: boolean\n}',
    },
  ])
})

test('the page has what an application needs first', () => {
  const page = clientApiPage()
  for (const name of ['createCallClient', 'CallClient', 'Call', 'createCallMedia', 'CallMedia', 'useCall']) {
    expect(page).toContain(`\n### ${name}\n`)
  }
  expect(page.match(/```/g)?.length).toBe((page.match(/\n### /g)?.length ?? 0) * 2)
})
