import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { makeTemporaryDirectory } from '@ringwire/testkit/process'
import type { Comparison, MeasurementResult } from '../src/measurement.ts'

/** `npm run bench -- --quick`: it ends with 0 only where each measurement was done, and no server lost or changed a message. */
test('the benchmark measures, in its quick form, and writes its figures and its pictures', async () => {
  const directory = await makeTemporaryDirectory()
  try {
    const [json, plots] = [join(directory.path, 'result.json'), join(directory.path, 'plots')]
    const main = join(import.meta.dir, '..', 'src', 'main.ts')
    const child = Bun.spawn([process.execPath, main, '--quick', '--json', json, '--plot', plots], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [said, told] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
    const code = await child.exited
    if (!(await Bun.file(json).exists())) throw new Error(`It wrote no figures:\n${said}\n${told}`)
    const written = (await Bun.file(json).json()) as { results: MeasurementResult[]; failures: unknown[] }
    expect(written.failures).toEqual([])
    expect(code).toBe(0)
    const { results } = written
    expect(results.map(({ name }) => name)).toContainValues(['relay', 'connect', 'call', 'load', 'tls'])
    const comparisons: Comparison[] = results.flatMap((result) => result.comparisons)
    expect(comparisons.filter(({ ratio }) => !(ratio.median > 0))).toEqual([])
    for (const name of ['ratios', 'relay', 'load', 'connects', 'call'])
      expect(await Bun.file(join(plots, `${name}.svg`)).text()).toStartWith('<svg')
  } finally {
    await directory.remove()
  }
}, 600_000)
