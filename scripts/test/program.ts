// The service as one executable, for a run of many tests: they start it some hundred times.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { programVariable } from '../../packages/testkit/src/program.ts'

/**
 * The code of most processes of a run is compiled and optimised for longer than it then runs. With these settings the engine
 * optimises only what runs ten times as often as it would otherwise ask for.
 */
export const optimisesLate: Readonly<Record<string, string>> = {
  BUN_JSC_thresholdForOptimizeAfterWarmUp: '10000',
  BUN_JSC_thresholdForOptimizeAfterLongWarmUp: '10000',
  BUN_JSC_thresholdForOptimizeSoon: '10000',
}

export interface Program {
  readonly env: Readonly<Record<string, string>>
  /** Builds it as `npm run build` does. */
  build(): Promise<void>
  /** Also while it is being built. */
  remove(): void
}

/** Where it will be, in a folder of its own, and what it is started with: tests give it few variables themselves. */
export function placeProgram(root: string, settings: Readonly<Record<string, string>>): Program {
  const folder = mkdtempSync(join(tmpdir(), 'ringwire-program-'))
  const [file, starter] = [join(folder, 'ringwire'), join(folder, 'start')]
  const exports = Object.entries(settings).map(([name, value]) => `export ${name}=${value}\n`)
  writeFileSync(starter, `#!/bin/sh\n${exports.join('')}exec ${file} "$@"\n`, { mode: 0o755 })
  let child: Bun.Subprocess | undefined
  return {
    env: { [programVariable]: starter },
    async build() {
      child = Bun.spawn([process.execPath, 'scripts/build.ts', file], {
        cwd: root,
        stdio: ['ignore', 'ignore', 'inherit'],
      })
      if ((await child.exited) !== 0) throw new Error('The service could not be built.')
    },
    remove() {
      child?.kill('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
