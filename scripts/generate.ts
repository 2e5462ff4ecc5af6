// `npm run generate`: prints docs/generated from the code. With --check it writes nothing and fails where a file differs.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createDocuments } from './generate/documents.ts'

const folder = join(dirname(import.meta.dir), 'docs', 'generated')

function committed(): Map<string, string> {
  mkdirSync(folder, { recursive: true })
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
}

function main(checkOnly: boolean): number {
  const documents = createDocuments()
  const files = committed()
  const differing = [...documents].filter(([name, text]) => files.get(name) !== text).map(([name]) => name)
  const leftOver = [...files.keys()].filter((name) => !documents.has(name))
  if (checkOnly) {
    for (const name of differing) console.error(`docs/generated/${name} is not what the code says: npm run generate`)
    for (const name of leftOver) console.error(`docs/generated/${name} is not printed from the code: remove it`)
    return differing.length + leftOver.length === 0 ? 0 : 1
  }
  for (const name of differing) writeFileSync(join(folder, name), documents.get(name) ?? '')
  for (const name of leftOver) rmSync(join(folder, name))
  for (const name of [...differing, ...leftOver]) console.log(`docs/generated/${name}`)
  return 0
}

process.exit(main(process.argv.includes('--check')))
