/** What standard output can show where it is a terminal. */
import type { Environment } from '../config/config.ts'
import type { Terminal, Tone } from './command.ts'

const codes: Record<Tone, string> = { strong: '1', good: '32', warn: '33', bad: '31', dim: '2' }

/** Colours unless NO_COLOR is set to anything (no-color.org), or the terminal has none. */
export function createTerminal(isTerminal: boolean, env: Environment): Terminal | undefined {
  if (!isTerminal) return undefined
  const isPlain = (env.NO_COLOR ?? '') !== '' || env.TERM === 'dumb'
  return { paint: (tone, text) => (isPlain || text === '' ? text : `\u001b[${codes[tone]}m${text}\u001b[0m`) }
}
