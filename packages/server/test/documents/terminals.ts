import { expect } from 'bun:test'
import { type RunningProcess, startProcess } from '@ringwire/testkit/process'

type Environment = Readonly<Record<string, string>>

/** Runs blocks of a document in a folder. `own` puts what is here in the place of what stands in the document. */
export function openTerminals(folder: string, own: (text: string) => string, env: () => Environment) {
  const running: RunningProcess[] = []

  /** A terminal of its own. */
  function type(block: string, more: Environment = {}): RunningProcess {
    const shell = startProcess(['sh', '-ec', `cd ${folder}\n${own(block)}`], { ...env(), ...more })
    running.push(shell)
    return shell
  }

  return {
    type,
    /** Its last command stays until it is ended: the signal is to it, and not to the shell. */
    stay: (block: string, more?: Environment) =>
      type(block.trimEnd().replace(/(?:[^\n]*\\\n)*[^\n]*$/, 'exec env $&'), more),
    /** All of its commands succeed; resolves with what they print. */
    async run(block: string, more?: Environment): Promise<string> {
      const shell = type(block, more)
      expect([await shell.exited, shell.output]).toEqual([0, expect.any(String)])
      return shell.out
    },
    stop: () => Promise.all(running.map((one) => one.stop())),
  }
}
