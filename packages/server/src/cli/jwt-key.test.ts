import { afterEach, beforeEach, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommandLine } from './program.ts'

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'ringwire-jwt-key-'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

async function run(args: readonly string[], env: Record<string, string> = {}) {
  const ran = { code: -1, out: '', err: '' }
  const none = () => {
    throw new Error('not asked for')
  }
  ran.code = await runCommandLine(args, {
    env: { RINGWIRE_DATA_DIR: dir, ...env },
    now: Date.now,
    out: (text) => {
      ran.out += text
    },
    err: (text) => {
      ran.err += text
    },
    terminal: undefined,
    errorTerminal: undefined,
    ...{
      ask: none,
      stopped: none,
      openConsole: none,
      readInput: none,
      openStore: none,
      checkStores: async () => [],
      backUp: none,
      migrate: none,
      serve: none,
    },
  })
  return ran
}

test('[KEY1] what is printed is what RINGWIRE_JWT_SECRETS takes, and the file is for its owner alone', async () => {
  const file = join(dir, 'k2.pem')
  const made = await run(['jwt-key', file])
  expect([made.code, made.out]).toEqual([0, expect.stringMatching(new RegExp(`^k[0-9a-f]{8}:file:${file}\n$`))])
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const pem = readFileSync(file, 'utf8')
  expect(made.err).not.toContain(pem.split('\n')[1] ?? '')
  const other = JSON.parse((await run(['jwt-key', join(dir, 'k3.pem'), '--alg', 'ES256', '--json'])).out)
  expect(other).toEqual({ kid: expect.any(String), alg: 'ES256', file: join(dir, 'k3.pem') })
  const ring = { RINGWIRE_JWT_SECRETS: `${made.out.trim()},${other.kid}:file:${other.file}` }
  expect(await run(['config', 'check'], ring)).toMatchObject({ code: 0, err: 'The configuration is good.\n' })

  const again = await run(['jwt-key', file])
  expect([again.code, again.err]).toEqual([1, `${file} was not written (EEXIST).\n`])
  expect(readFileSync(file, 'utf8')).toBe(pem)
  expect((await run(['jwt-key', join(dir, 'no', 'k.pem')])).err).toContain('ENOENT')
  expect((await run(['jwt-key', join(dir, 'k4.pem'), '--alg', 'RS256'])).code).toBe(2)
})

test('[KEY1] config check says what is wrong with a key, and warns of one that every account may read', async () => {
  const file = join(dir, 'k2.pem')
  const ring = { RINGWIRE_JWT_SECRETS: `k2:file:${file}` }
  const missing = await run(['config', 'check'], ring)
  expect([missing.code, missing.err]).toEqual([1, `RINGWIRE_JWT_SECRETS k2 names no readable file: ${file} (ENOENT)\n`])
  await run(['jwt-key', file])
  chmodSync(file, 0o644)
  const open = await run(['config', 'check'], ring)
  expect([open.code, open.err]).toEqual([0, expect.stringContaining(`chmod o-rwx ${file}`)])
})
