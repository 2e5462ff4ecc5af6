import { afterEach, beforeEach, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileProblems, fileWarnings } from './config.ts'

let dataDir: string
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'ringwire-files-'))
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

test('a file that cannot be opened is named, with the reason', () => {
  const missing = join(dataDir, 'cert.pem')
  expect(fileProblems({ tlsCert: missing, tlsKey: dataDir, databaseUrl: null })).toEqual([
    `RINGWIRE_TLS_CERT names no readable file: ${missing} (ENOENT)`,
    `RINGWIRE_TLS_KEY names no readable file: ${dataDir} (a directory)`,
  ])
  writeFileSync(missing, '')
  expect(fileProblems({ tlsCert: missing, tlsKey: null, databaseUrl: null })).toEqual([])
})

test('secrets that every account may read are warned of, with what to do', () => {
  const tlsKey = join(dataDir, 'key.pem')
  const named = join(dataDir, 'turn-secret')
  const made = ['jwt-secrets', 'demo-secret', 'ringwire.db'].map((name) => join(dataDir, name))
  const files = [...made, named, tlsKey]
  const warnings = () => fileWarnings({ dataDir, tlsKey, secretFiles: [named] }, 'linux')
  expect(warnings()).toEqual([])
  for (const file of files) writeFileSync(file, '')
  for (const mode of [0o600, 0o640]) {
    for (const file of files) chmodSync(file, mode)
    expect(warnings()).toEqual([])
  }
  for (const file of files) chmodSync(file, 0o644)
  expect(warnings()).toHaveLength(5)
  for (const [index, file] of files.entries()) expect(warnings()[index]).toContain(`chmod o-rwx ${file}`)
  expect(fileWarnings({ dataDir, tlsKey, secretFiles: [named] }, 'win32')).toEqual([])
})
