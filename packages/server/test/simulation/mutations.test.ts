import { expect, test } from 'bun:test'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { mutations } from './mutations.ts'

const source = join(import.meta.dir, '..', '..', 'src')

test('each mutation is of something that is there once', async () => {
  for (const { name, file, find } of mutations) {
    const text = await readFile(join(source, file), 'utf8')
    expect([name, text.split(find).length - 1]).toEqual([name, 1])
  }
})
