import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { page } from './tables.ts'

const source = join(dirname(import.meta.dir), '..', 'packages', 'client', 'src')

/**
 * The names that an application imports, from where, and the files that declare them. Without names: everything that a
 * file exports.
 */
const entries: { from: string; files: { file: string; names?: string[] }[] }[] = [
  {
    from: '@ringwire/client',
    files: [
      { file: 'client.ts', names: ['createCallClient'] },
      { file: 'error.ts', names: ['RingwireError'] },
      { file: 'types.ts' },
    ],
  },
  {
    from: '@ringwire/client/media',
    files: [{ file: 'media/call-media.ts', names: ['createCallMedia'] }, { file: 'media/types.ts' }],
  },
  { from: '@ringwire/client/media/preview', files: [{ file: 'media/preview.ts' }] },
  { from: '@ringwire/client/react', files: [{ file: 'react/hooks.ts' }] },
  {
    from: '@ringwire/client/push',
    files: [{ file: 'ring.ts', names: ['Ring', 'NoRing', 'Rung'] }, { file: 'push.ts' }],
  },
  { from: '@ringwire/client/presence', files: [{ file: 'presence.ts' }] },
  { from: '@ringwire/client/react-native', files: [{ file: 'react-native.ts' }] },
  { from: '@ringwire/client/take', files: [{ file: 'take.ts' }] },
  { from: '@ringwire/client/transfer', files: [{ file: 'transfer.ts' }] },
  { from: '@ringwire/client/waiting', files: [{ file: 'waiting.ts' }] },
]

export interface Declaration {
  name: string
  /** The prose above it. */
  description: string
  code: string
}

/** Brackets that are open at the end of a text. Those in comments and strings come in pairs, too. */
function depth(text: string): number {
  return [...text].reduce((open, char) => open + ('{(['.includes(char) ? 1 : '})]'.includes(char) ? -1 : 0), 0)
}

/** A signature without the body that follows; undefined while it is not whole. */
function signature(text: string): { code: string; hasBody: boolean } | undefined {
  const code = text.replace(/ \{$/, '')
  const hasBody = code !== text
  if (code.endsWith(':')) return undefined
  return depth(code) === 0 ? { code, hasBody } : undefined
}

function describe(lines: string[]): string {
  if (lines.at(-1)?.trim().endsWith('*/') !== true) return ''
  const from = lines.findLastIndex((line) => line.startsWith('/**'))
  return lines
    .slice(from)
    .map((line) =>
      line
        .replace(/^\/\*\*|\*\/$|^ \*(?!\/)/g, '')
        .replace(/\*\/$/, '')
        .trim(),
    )
    .filter(Boolean)
    .join(' ')
}

/**
 * The exported declarations of a source file, in its order, as Biome formats them: a declaration begins in the first
 * column, and what belongs to it is indented or closes it.
 */
export function declarationsOf(text: string): Declaration[] {
  const lines = text.split('\n')
  const found: (Declaration & { hasBody: boolean })[] = []
  for (const [at, line] of lines.entries()) {
    const [, kind, name = ''] = /^export (interface|type|const|class|function) (\w+)/.exec(line) ?? []
    if (!kind) continue
    let code = line
    let hasBody = false
    for (let next = at + 1; next <= lines.length; next++) {
      const whole = kind === 'function' ? signature(code) : undefined
      if (whole) {
        ;({ code, hasBody } = whole)
        break
      }
      const goesOn = /^[ })\]]/.test(lines[next] ?? '')
      if (kind !== 'function' && depth(code) === 0 && !goesOn) break
      code += `\n${lines[next]}`
    }
    found.push({ name, description: describe(lines.slice(0, at)), code: code.replace(/^export /, ''), hasBody })
  }
  return merge(found)
}

/** Overloads are one function, and what implements them is nobody's business. */
function merge(found: (Declaration & { hasBody: boolean })[]): Declaration[] {
  const names = [...new Set(found.map(({ name }) => name))]
  return names.flatMap((name) => {
    const same = found.filter((it) => it.name === name)
    const values = same.filter(({ code }) => code.startsWith('function'))
    const shown = values.length > 1 ? same.filter(({ hasBody }) => !hasBody) : same
    const description = same.map((it) => it.description).find(Boolean) ?? ''
    return [{ name, description, code: shown.map(({ code }) => code).join('\n') }]
  })
}

function section({ from, files }: (typeof entries)[number]): string {
  const shown = files.flatMap(({ file, names }) => {
    const all = declarationsOf(readFileSync(join(source, file), 'utf8'))
    return names === undefined ? all : all.filter(({ name }) => names.includes(name))
  })
  const parts = shown.map(({ name, description, code }) =>
    [`### ${name}`, ...(description ? [description] : []), `\`\`\`ts\n${code}\n\`\`\``].join('\n\n'),
  )
  return [`## ${from}`, ...parts].join('\n\n')
}

/** The reference of the SDK: what its exports say of themselves. */
export function clientApiPage(): string {
  return page('Client API', 'How to use it is in [client.md](../client.md).', ...entries.map(section))
}
