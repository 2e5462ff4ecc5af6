/** What standard output can show where it is a terminal. */
import type { Environment } from '../config/config.ts'
import type { Terminal, Tone } from './command.ts'

const codes: Record<Tone, string> = { strong: '1', good: '32', warn: '33', bad: '31', dim: '2' }

/**
 * Colours unless NO_COLOR is set to anything (no-color.org), or the terminal has none. FORCE_COLOR goes before both: 0 or
 * false is no colours, anything else is colours, also where the output is no terminal, as for `less -R` and build logs.
 */
export function createTerminal(isTerminal: boolean, env: Environment): Terminal | undefined {
  const force = env.FORCE_COLOR ?? ''
  const isForced = force !== '' && force !== '0' && force !== 'false'
  if (!isTerminal && !isForced) return undefined
  const isPlain = force === '' ? (env.NO_COLOR ?? '') !== '' || env.TERM === 'dumb' : !isForced
  return { paint: (tone, text) => (isPlain || text === '' ? text : `\u001b[${codes[tone]}m${text}\u001b[0m`) }
}
