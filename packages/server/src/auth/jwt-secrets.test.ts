import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadJwtSecrets, readOrCreateSecret } from './jwt-secrets.ts'

let base: string
beforeAll(() => {
  base = mkdtempSync(join(tmpdir(), 'ringwire-secrets-'))
})
afterAll(() => rmSync(base, { recursive: true, force: true }))

const config = (name: string) => ({ jwtSecrets: null, dataDir: join(base, name, 'deep') })

test('[TOK2] keys that are configured are taken, and nothing is written', () => {
  const jwtSecrets = [{ kid: 'a', key: Buffer.alloc(32) }]
  const dataDir = join(base, 'unused')
  expect(loadJwtSecrets({ jwtSecrets, dataDir })).toEqual(jwtSecrets)
  expect(existsSync(dataDir)).toBe(false)
})

test('[TOK2] made once, only for its owner, and the same at every start', () => {
  const { dataDir } = config('once')
  const [first, ...more] = loadJwtSecrets(config('once'))
  expect(more).toEqual([])
  expect(first?.key).toHaveLength(32)
  expect(loadJwtSecrets(config('once'))).toEqual([first!])
  expect(statSync(join(dataDir, 'jwt-secrets')).mode & 0o777).toBe(0o600)
  expect(statSync(dataDir).mode & 0o777).toBe(0o700)
  expect(readdirSync(dataDir)).toEqual(['jwt-secrets'])
})

test('[TOK2] a hand may put further keys into the file, one a line', () => {
  const { dataDir } = config('ring')
  loadJwtSecrets(config('ring'))
  const path = join(dataDir, 'jwt-secrets')
  const before = readFileSync(path, 'utf8')
  writeFileSync(path, `new:${Buffer.alloc(32, 3).toString('base64url')}\n${before}`)
  expect(loadJwtSecrets(config('ring')).map(({ kid }) => kid)).toEqual(['new', before.split(':')[0]!])
})

test('[TOK2] a broken file stops the start; it is never replaced, and what it holds does not show', () => {
  const { dataDir } = config('broken')
  loadJwtSecrets(config('broken'))
  const path = join(dataDir, 'jwt-secrets')
  for (const content of ['', 'rubbish', 'k:c2hvcnQ']) {
    writeFileSync(path, content)
    expect(() => loadJwtSecrets(config('broken'))).toThrow(path)
    expect(readFileSync(path, 'utf8')).toBe(content)
  }
  writeFileSync(path, 'k:c2hvcnQ')
  expect(() => loadJwtSecrets(config('broken'))).not.toThrow('c2hvcnQ')
})

test('[TOK2] a file that may not be read is no reason to make another', () => {
  if (process.getuid?.() === 0) return
  const { dataDir } = config('closed')
  loadJwtSecrets(config('closed'))
  chmodSync(join(dataDir, 'jwt-secrets'), 0)
  expect(() => loadJwtSecrets(config('closed'))).toThrow()
})

test('[TOK2] whoever comes second gets what the first wrote, also between the look and the write', () => {
  const path = join(base, 'second')
  expect(readOrCreateSecret(path, 'first')).toBe('first')
  expect(readOrCreateSecret(path, 'second')).toBe('first')
})
