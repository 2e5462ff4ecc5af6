/** `ringwire participant …`: somebody is sent away, as by the backend of the product. */
import type { Command } from 'commander'
import { readInstant } from '../services/seen-calls.ts'
import { participantHash } from '../session/session-id.ts'
import { CommandFailure, exitCodes, printJson, type Surroundings, withStore } from './command.ts'
import { name } from './options.ts'

interface DisconnectOptions {
  product: string
  user: string
  role: string
  until?: string
  json?: boolean
}

export function addParticipantCommands(program: Command, surroundings: Surroundings): void {
  program
    .command('participant')
    .description('Participants of calls.')
    .command('disconnect')
    .description('Close the sockets of a participant, and take its tokens back. A running service hears of it at once.')
    .requiredOption('--product <name>', 'product namespace', name)
    .requiredOption('--user <id>', 'user_id of the participant', name)
    .requiredOption('--role <role>', 'role of the participant', name)
    .option('--until <instant>', 'tokens issued before it do not count either, as 2026-03-01T09:00:00Z (default: now)')
    .option('--json', 'print JSON, as the REST answer, instead of text')
    .action((options) => disconnect(surroundings, options))
}

async function disconnect(surroundings: Surroundings, options: DisconnectOptions): Promise<void> {
  const { product, user: userId, role, json } = options
  const until = readInstant(options.until)
  if (until === undefined)
    throw new CommandFailure(exitCodes.usage, '--until must be an ISO 8601 instant with its offset.')
  const now = Date.now()
  const before = Math.max(now, until)
  await withStore(surroundings, (store) =>
    store.products.revoke(participantHash({ product, role, userId }), before, now),
  )
  const tokensFrom = new Date(before).toISOString()
  if (json) return printJson(surroundings, { success: true, tokens_from: tokensFrom })
  surroundings.out(`Tokens of ${role}/${userId} that were issued before ${tokensFrom} do not count any more.\n`)
}
