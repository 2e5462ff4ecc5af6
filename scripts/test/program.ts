// The service as one executable, for a run of many tests: they start it some hundred times.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { programVariable } from '../../packages/testkit/src/program.ts'

export interface Program {
  readonly env: Readonly<Record<string, string>>
  /** Builds it as `npm run build` does. */
  build(): Promise<void>
  /** Also while it is being built. */
  remove(): void
}

/** The path of the program, in a folder of its own. */
export function placeProgram(root: string): Program {
  const folder = mkdtempSync(join(tmpdir(), 'ringwire-program-'))
  const file = join(folder, 'ringwire')
  let child: Bun.Subprocess | undefined
  return {
    env: { [programVariable]: file },
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
