/** `ringwire call transfer`: hands one side of a call over to somebody else, as the backend of its product does. */
import type { TransferBegun, TransferRequest } from '@ringwire/protocol/backend'
import { type Command, Option } from 'commander'
import { type AskOptions, askService, withKey, withServiceOptions } from './asking.ts'
import { CommandFailure, exitCodes, printJson, type Surroundings, visible } from './command.ts'
import { fullUuid, notFound } from './live-calls.ts'
import { name, participantName } from './options.ts'

export function addTransferCallCommand(call: Command, surroundings: Surroundings): void {
  const transfer = call
    .command('transfer')
    .description(
      'Transfer a call: it rings at the target, and one side goes on with the person who answers. Asks the running service, with a product key.',
    )
    .argument('<call>', 'its call_uuid, or the first characters of it, at least 4')
    .requiredOption('--product <name>', 'product namespace', name)
    .addOption(
      new Option('--by <side>', 'for which side; it leaves the call when the target answers')
        .choices(['caller', 'callee'])
        .makeOptionMandatory(),
    )
    .requiredOption('--role <role>', 'role of the target', participantName)
    .option('--user <id>', 'user_id of the target; this or --group (default: none)', participantName)
    .option('--group <name>', 'group of the role as the target; this or --user (default: none)', participantName)
  withServiceOptions(transfer)
    .option('--json', 'print the JSON of the REST answer instead of text')
    .action((callUuid, options) => transferCall(surroundings, callUuid, options))
}

interface TransferOptions extends AskOptions {
  by: TransferRequest['by']
  role: string
  user?: string
  group?: string
  json?: boolean
}

async function transferCall(surroundings: Surroundings, typed: string, options: TransferOptions): Promise<void> {
  const { by, role, user, group, json } = options
  if ((user === undefined) === (group === undefined))
    throw new CommandFailure(exitCodes.usage, 'Give --user or --group, and not both: it rings at one of them.')
  const asking = await withKey(surroundings, options)
  const callUuid = await fullUuid(surroundings, typed, asking)
  const to = { role, ...(user !== undefined && { user_id: user }), ...(group !== undefined && { group }) }
  const begun = await askService<TransferBegun>(surroundings, asking, {
    method: 'POST',
    path: `calls/${encodeURIComponent(callUuid)}/transfer`,
    body: { by, to } satisfies TransferRequest,
  })
  if (begun === undefined) throw notFound(options.product, typed, callUuid)
  if (json) return printJson(surroundings, begun)
  const target = group === undefined ? `${role}/${user}` : `the group ${role}/${group}`
  surroundings.out(`${visible(`It rings at ${target}: ${begun.new_call_uuid}.`)}\n`)
}
