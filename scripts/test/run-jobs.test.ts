import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

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

/** Only one file lasts that long; on a busy machine the others take their time, too. */
const jobTimeoutMs = 30_000

let output = ''
const folders: string[] = []
beforeAll(async () => {
  output = await run(Object.entries(files).map(([name, { code }]) => [name, code]))
}, 240_000)
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** What is said where these files run; `idleCores`: how many cores are idle then. */
async function run(all: readonly (readonly [name: string, code: string])[], idleCores?: string): Promise<string> {
  const root = mkdtempSync(join(tmpdir(), 'ringwire-run-jobs-'))
  folders.push(root)
  for (const [name, code] of all) {
    const imports =
      "import { afterAll, beforeAll, expect, test } from 'bun:test'\nimport { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'"
    const file = join(root, `${name}.test.ts`)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, `${imports}\n${code}\n`)
  }
  const jobs = all.map(([name]) => ({ name: `${name}.test.ts`, file: `${name}.test.ts`, env: {} }))
  const script = `
    import { writeFileSync } from 'node:fs'
    import { runJobs } from ${JSON.stringify(join(import.meta.dir, 'run-jobs.ts'))}
    const given = { ...${JSON.stringify({ root, jobs })}, jobTimeoutMs: ${jobTimeoutMs}${idleCores === undefined ? '' : `, idleCores: ${idleCores}`} }
    console.log(JSON.stringify(await runJobs(given)))`
  const runner = Bun.spawn([process.execPath, '-e', script], { cwd: root, stdout: 'pipe', stderr: 'inherit' })
  const said = await new Response(runner.stdout).text()
  expect(await runner.exited).toBe(0)
  return said
}

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

describe('how many run at once', () => {
  const cores = Math.min(availableParallelism(), 4)
  const names = Array.from({ length: cores + 2 }, (_, i) => `waits-${i}`)
  const there = `const there = () => readdirSync('.').filter((each) => each.endsWith('.there')).length`
  const come = (name: string) => `${there}\nbeforeAll(() => writeFileSync('${name}.there', ''))`
  const leave = (name: string) => `afterAll(() => rmSync('${name}.there'))`
  const passed = (said: string) => said.match(/^ok /gm)?.length

  test('more than there are cores, where one is idle', async () => {
    // Each of them ends when all have begun.
    const code = `test('a', async () => { while (there() < ${names.length}) await Bun.sleep(20) })`
    const all = names.map((name) => [name, `${come(name)}\n${code}`] as const)
    expect(passed(await run(all, '() => 1'))).toBe(names.length)
  })

  test('no more than there are cores, where none is idle', async () => {
    // Nobody ends before that was looked at three times.
    const code = `test('a', async () => {
      while (!existsSync('third-look')) await Bun.sleep(20)
      expect(there()).toBeLessThanOrEqual(${cores})
    })`
    const looking = "{ let looks = 0; return () => { if (++looks === 3) writeFileSync('third-look', ''); return 0 } }"
    const all = names.map((name) => [name, `${come(name)}\n${leave(name)}\n${code}`] as const)
    expect(passed(await run(all, `(() => ${looking})()`))).toBe(names.length)
  })

  test('one with calls in the browser and one with other pages, where cores are idle', async () => {
    const kinds = { media: 'packages/ui/test/calls', pages: 'packages/server/test/operators/page' }
    const all = Object.entries(kinds).flatMap(([kind, path]) =>
      [1, 2].map((n) => {
        const other = kind === 'media' ? 'pages' : 'media'
        // Each test ends when a test of the other kind runs at the same time. No second one of its own kind may run then.
        const code = `
          beforeAll(() => writeFileSync('${kind}-${n}.there', ''))
          ${leave(`${kind}-${n}`)}
          test('a', async () => {
            const here = () => readdirSync('.').filter((each) => each.endsWith('.there'))
            while (!here().some((each) => each.startsWith('${other}'))) await Bun.sleep(20)
            writeFileSync('${kind}-${n}.met', '')
            while (!existsSync('${other}-${n}.met')) await Bun.sleep(20)
            expect(here().filter((each) => each.startsWith('${kind}'))).toHaveLength(1)
          })`
        return [`${path}-${n}`, code] as const
      }),
    )
    expect(passed(await run(all, '() => 1'))).toBe(all.length)
  })
})
