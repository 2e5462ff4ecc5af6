import { expect, onTestFinished, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Unlike the unit tests of jwt-secrets.ts this one needs processes. */
test('[TOK2] processes that start at once agree', async () => {
  const base = mkdtempSync(join(tmpdir(), 'ringwire-secrets-'))
  onTestFinished(() => rmSync(base, { recursive: true, force: true }))
  const dataDir = join(base, 'race')
  const program = `
    import { loadJwtSecrets } from ${JSON.stringify(join(import.meta.dir, '../../src/auth/jwt-secrets.ts'))}
    await Bun.stdin.text()
    const [secret] = loadJwtSecrets({ jwtSecrets: null, dataDir: ${JSON.stringify(dataDir)} })
    console.log(Buffer.from(secret.key).toString('hex'))
  `
  const children = Array.from({ length: 6 }, () =>
    Bun.spawn([process.execPath, '-e', program], { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' }),
  )
  // All are there before any goes on.
  for (const child of children) child.stdin.end()
  const keys = await Promise.all(children.map((child) => new Response(child.stdout).text()))
  expect(keys[0]).toMatch(/^[0-9a-f]{64}\n$/)
  expect(new Set(keys).size).toBe(1)
  expect(readdirSync(dataDir)).toEqual(['jwt-secrets'])
})
