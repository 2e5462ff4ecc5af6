import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createPublicKey } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { writeJwtSecrets } from '../auth/jwt-secrets.ts'
import { loadConfig } from './config.ts'
import { algorithmOf, makeSigningKey } from './signing-key.ts'

let base: string
const secret = Buffer.alloc(32, 1).toString('base64url')
const file = (name: string, content: string) => {
  const path = join(base, name)
  writeFileSync(path, content, { mode: 0o600 })
  return path
}
let ed: string
let ec: string
beforeAll(() => {
  base = mkdtempSync(join(tmpdir(), 'ringwire-jwt-'))
  ed = file('ed.pem', makeSigningKey('EdDSA'))
  ec = file('ec.pem', makeSigningKey('ES256'))
})
afterAll(() => rmSync(base, { recursive: true, force: true }))

function load(value: string) {
  const loaded = loadConfig({ RINGWIRE_JWT_SECRETS: value })
  return loaded.ok ? loaded.config : loaded.problems
}

test('[KEY1] secrets and files stand in one list, in their order, and the files count as secrets', () => {
  const config = load(`e:file:${ed}, h:${secret},c:file:${relative(process.cwd(), ec)}`)
  if (!('jwtSecrets' in config)) throw new Error(String(config))
  expect(config.jwtSecrets?.map(({ kid, key }) => [kid, algorithmOf(key)])).toEqual([
    ['e', 'EdDSA'],
    ['h', 'HS256'],
    ['c', 'ES256'],
  ])
  expect(config.secretFiles).toEqual([ed, ec])
  expect(writeJwtSecrets(config.jwtSecrets ?? [])).toBe(`e:file:${ed},h:${secret},c:file:${ec}`)
})

test('[KEY1] [LOG1] what is wrong with a key names its kid and file, and shows nothing of the file', () => {
  const key = makeSigningKey('EdDSA')
  const open = createPublicKey(key).export({ format: 'pem', type: 'spki' }) as string
  const publicKey = file('public.pem', open)
  const text = file('text.pem', 'hunter2')
  const missing = join(base, 'missing.pem')
  const form = 'is not kid:base64url or kid:file:PATH (after the kid and a colon, openssl rand -hex 32 makes one)'
  const cases: [string, string][] = [
    [`k:file:${missing}`, `k names no readable file: ${missing} (ENOENT)`],
    [`k:file:${base}`, `k names no readable file: ${base} (a directory)`],
    [`k:file:${publicKey}`, `k: ${publicKey} holds a public key; the private one is needed`],
    [`k:file:${text}`, `k: ${text} holds no private key (PEM)`],
    [`h:${secret},k:file:${ed},k:file:${ec}`, 'k is there twice'],
    ['k:file:', `entry 1 ${form}`],
    [`h:${secret},file:${ed}`, `entry 2 ${form}`],
  ]
  for (const [value, problem] of cases) expect(load(value)).toEqual([`RINGWIRE_JWT_SECRETS ${problem}`])
})
