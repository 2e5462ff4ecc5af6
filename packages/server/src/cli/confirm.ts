/** A command asks before it does something that cannot be undone. */
import type { Command } from 'commander'
import { CommandFailure, exitCodes, type Surroundings, visible } from './command.ts'

export interface ConfirmOptions {
  readonly yes?: boolean
}

export function withYes(command: Command): Command {
  return command.option('--yes', 'do it without a question')
}

/**
 * Asks in a terminal, and ends the command unless the answer is yes. `what` is a sentence, as "This erases ann.".
 * A script is not asked: `isRequired` says that it has to give --yes.
 */
export async function confirm(
  surroundings: Pick<Surroundings, 'ask'>,
  what: string,
  { yes }: ConfirmOptions,
  isRequired = false,
): Promise<void> {
  if (yes) return
  const answer = await surroundings.ask(`${visible(what)} It cannot be undone. Go on? [y/N] `)
  if (answer === undefined) {
    if (!isRequired) return
    throw new CommandFailure(exitCodes.usage, `${visible(what)} It cannot be undone: give --yes if you mean it.`)
  }
  if (!/^y(es)?$/i.test(answer.trim())) throw new CommandFailure(exitCodes.failed, 'Nothing was changed.')
}
