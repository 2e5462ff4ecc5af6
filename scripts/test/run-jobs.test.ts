import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What a test file holds → how many of its tests count as passed and failed. */
const files: Record<string, { code: string; passed: number; failed: number }> = {
  passes: { code: "test('a', () => {}); test('b', () => {})", passed: 2, failed: 0 },
  fails: { code: "test('a', () => {}); test('b <&>', () => expect(1).toBe(2))", passed: 1, failed: 1 },
  skips: { code: "test.skip('a', () => {}); test.todo('b'); test('c', () => {})", passed: 1, failed: 2 },
  only: { code: "test('a', () => {}); test.only('b', () => {})", passed: 0, failed: 1 },
  empty: { code: 'export {}', passed: 0, failed: 1 },
  'is-no-code': { code: "test('a', () => {", passed: 0, failed: 1 },
  'throws-at-load': { code: "test('a', () => {}); throw new Error('at load')", passed: 0, failed: 1 },
  'throws-later': {
    code: "test('a', async () => { setTimeout(() => { throw 1 }); await Bun.sleep(50) })",
    passed: 0,
    failed: 1,
  },
  'throws-before': { code: "beforeAll(() => { throw new Error() }); test('a', () => {})", passed: 0, failed: 1 },
  'throws-after': { code: "afterAll(() => { throw new Error() }); test('a', () => {})", passed: 1, failed: 1 },
  exits: { code: "test('a', () => {}); test('b', () => process.exit(0))", passed: 0, failed: 1 },
  crashes: { code: "test('a', () => {}); test('b', () => process.kill(process.pid, 'SIGKILL'))", passed: 0, failed: 1 },
  // It keeps its thread, and no core.
  'never-ends': { code: "test('a', () => Bun.sleepSync(3_600_000))", passed: 0, failed: 1 },
}

/** Only one file lasts so long; on a busy machine the others take their time, too. */
const jobTimeoutMs = 30_000

let root = ''
let output = ''
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'ringwire-run-jobs-'))
  for (const [name, { code }] of Object.entries(files)) {
    const imports = "import { afterAll, beforeAll, expect, test } from 'bun:test'"
    writeFileSync(join(root, `${name}.test.ts`), `${imports}\n${code}\n`)
  }
  const jobs = Object.keys(files).map((name) => {
    const file = `${name}.test.ts`
    return { name: file, file, env: {} }
  })
  const script = `
    import { runJobs } from ${JSON.stringify(join(import.meta.dir, 'run-jobs.ts'))}
    console.log(JSON.stringify(await runJobs({ ...${JSON.stringify({ root, jobs })}, jobTimeoutMs: ${jobTimeoutMs} })))`
  const runner = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe', stderr: 'inherit' })
  output = await new Response(runner.stdout).text()
  expect(await runner.exited).toBe(0)
}, 240_000)
afterAll(() => rmSync(root, { recursive: true, force: true }))

for (const [name, { passed, failed }] of Object.entries(files)) {
  test(`a file that ${name.replaceAll('-', ' ')}: ${passed} passed, ${failed} failed`, () => {
    const line = output.split('\n').find((it) => it.includes(` ${name}.test.ts: `)) ?? ''
    expect(line).toStartWith(failed === 0 ? 'ok ' : 'FAIL ')
    expect(line).toContain(failed === 0 ? `: ${passed} passed (` : `: ${passed} passed, ${failed} failed (`)
  })
}

test('the counts are those of all files', () => {
  const total = JSON.parse(output.trim().split('\n').at(-1) ?? '')
  const sum = (key: 'passed' | 'failed') => Object.values(files).reduce((all, it) => all + it[key], 0)
  expect({ passed: total.passed, failed: total.failed }).toEqual({ passed: sum('passed'), failed: sum('failed') })
  const failing = Object.keys(files).filter((name) => (files[name]?.failed ?? 0) > 0)
  const found = total.failedJobs.map(({ name }: { name: string }) => name)
  expect(found.sort()).toEqual(failing.map((name) => `${name}.test.ts`).sort())
})

test('of each job that failed a few lines say what', () => {
  const total = JSON.parse(output.trim().split('\n').at(-1) ?? '')
  const digestOf = (file: string) =>
    total.failedJobs.find(({ name }: { name: string }) => name === `${file}.test.ts`).digest
  const said = digestOf('fails').join('\n')
  for (const part of ['error: expect(received).toBe(expected)', 'Expected: 2', 'Received: 1', '(fail) b <&>']) {
    expect(said).toContain(part)
  }
  expect(digestOf('never-ends').join('\n')).toContain('killed')
})
