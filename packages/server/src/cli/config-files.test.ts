import { afterEach, beforeEach, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeSigningKey } from '../config/signing-key.ts'
import { fileProblems, fileWarnings, readMadeRing } from './config.ts'

let dataDir: string
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'ringwire-files-'))
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))
const ring = () => ({ jwtSecrets: null, dataDir })

test('a file that cannot be opened is named, with the reason', () => {
  const missing = join(dataDir, 'cert.pem')
  const none = { databaseUrl: null, jwtSecrets: null, demo: false, dataDir } as const
  expect(fileProblems({ ...none, tlsCert: missing, tlsKey: dataDir })).toEqual([
    `RINGWIRE_TLS_CERT names no readable file: ${missing} (ENOENT)`,
    `RINGWIRE_TLS_KEY names no readable file: ${dataDir} (a directory)`,
  ])
  writeFileSync(missing, '')
  expect(fileProblems({ ...none, tlsCert: missing, tlsKey: null })).toEqual([])
})

test('secrets that every account may read are warned of, with what to do', () => {
  const tlsKey = join(dataDir, 'key.pem')
  const named = join(dataDir, 'turn-secret')
  const made = ['jwt-secrets', 'demo-secret', 'ringwire.db'].map((name) => join(dataDir, name))
  const files = [...made, named, tlsKey]
  const warnings = () => fileWarnings({ ...ring(), tlsKey, secretFiles: [named] }, 'linux')
  expect(warnings()).toEqual([])
  for (const file of files) writeFileSync(file, '')
  for (const mode of [0o600, 0o640]) {
    for (const file of files) chmodSync(file, mode)
    expect(warnings()).toEqual([])
  }
  for (const file of files) chmodSync(file, 0o644)
  expect(warnings()).toHaveLength(5)
  for (const [index, file] of files.entries()) expect(warnings()[index]).toContain(`chmod o-rwx ${file}`)
  expect(fileWarnings({ ...ring(), tlsKey, secretFiles: [named] }, 'win32')).toEqual([])
})

test('[KEY1] keys that the file jwt-secrets of the data directory names are looked at as the others', () => {
  const key = join(dataDir, 'k2.pem')
  writeFileSync(join(dataDir, 'jwt-secrets'), `k2:file:${key}\n`, { mode: 0o600 })
  const problems = () => readMadeRing(ring()).problems
  const warnings = () => fileWarnings({ ...ring(), tlsKey: null, secretFiles: [] }, 'linux')
  expect(problems()).toEqual([`${join(dataDir, 'jwt-secrets')} k2 names no readable file: ${key} (ENOENT)`])
  expect(warnings()).toEqual([])
  writeFileSync(key, makeSigningKey('EdDSA'), { mode: 0o600 })
  expect([problems(), warnings()]).toEqual([[], []])
  chmodSync(key, 0o644)
  expect(warnings()).toEqual([expect.stringContaining(`chmod o-rwx ${key}`)])
})
