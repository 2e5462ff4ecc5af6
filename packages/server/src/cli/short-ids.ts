/** Ids may be typed short: their first characters, if only one id begins with them. */
import { CommandFailure, exitCodes, visible } from './command.ts'

/** Fewer characters would fit by chance. */
export const fewest = 4
const mostShown = 10

/**
 * The id that was typed, in full or short; undefined if none begins like it. Several that do end the command with a list of
 * them. The part before the first `_` of an id may be left out.
 */
export function findId(typed: string, ids: readonly string[]): string | undefined {
  if (ids.includes(typed)) return typed
  if (typed.length < fewest) return undefined
  const wanted = typed.toLowerCase()
  const found = ids.filter((id) => beginsWith(id.toLowerCase(), wanted))
  if (found.length <= 1) return found[0]
  const shown = found.slice(0, mostShown).map(visible).join('\n  ')
  const rest = found.length > mostShown ? '\n  …' : ''
  throw new CommandFailure(
    exitCodes.usage,
    `Several begin with ${visible(typed)}. Type more of one:\n  ${shown}${rest}`,
  )
}

const beginsWith = (id: string, start: string) =>
  id.startsWith(start) || id.slice(id.indexOf('_') + 1).startsWith(start)
