/** `ringwire call tail` and `ringwire call end`: calls as they happen. */
import type { CallView } from '@ringwire/protocol/backend'
import type { Command } from 'commander'
import { type FollowedEntry, followCalls } from '../services/followed-calls.ts'
import { type AskOptions, askService, withServiceOptions } from './asking.ts'
import { CommandFailure, exitCodes, printJson, type Surroundings, visible, withStore } from './command.ts'
import { name } from './options.ts'

/** How often the store is read, in ms. */
const pollMs = 500

export function addLiveCallCommands(call: Command, surroundings: Surroundings): void {
  call
    .command('tail')
    .description('What happens to the calls of a product from now on, until it is interrupted.')
    .requiredOption('--product <name>', 'product namespace', name)
    .option('--json', 'print a JSON object a line instead of text')
    .action((options) => tail(surroundings, options))
  const end = call
    .command('end')
    .description(
      'End a call, as the backend of its product does: both sides are told. Asks the running service, with a product key.',
    )
    .argument('<call>', 'its call_uuid')
    .requiredOption('--product <name>', 'product namespace', name)
    .option('--reason <text>', 'why; kept with the call, and shown to nobody in it (default: none)')
  withServiceOptions(end)
    .option('--json', 'print JSON, as the REST answer, instead of text')
    .action((callUuid, options) => endCall(surroundings, callUuid, options))
}

interface TailOptions {
  product: string
  json?: boolean
}

async function tail(surroundings: Surroundings, { product, json }: TailOptions): Promise<void> {
  await withStore(surroundings, async ({ calls }) => {
    const followed = await followCalls({ calls, product, since: surroundings.now() })
    surroundings.err(`Calls of ${product} from now on; Ctrl-C ends.\n`)
    for (;;) {
      for (const entry of await followed.next()) {
        surroundings.out(`${visible(json ? JSON.stringify(entry) : lineOf(entry))}\n`)
      }
      await Bun.sleep(pollMs)
    }
  })
}

function lineOf({ at, call_uuid, what, who, detail }: FollowedEntry): string {
  const by = who === undefined ? '' : ` by ${who.role}/${who.user_id}`
  const reason = detail.end_reason === undefined ? '' : ` (${detail.end_reason})`
  return `${at}  ${call_uuid}  ${what}${reason}${by}`
}

interface EndOptions extends AskOptions {
  reason?: string
  json?: boolean
}

async function endCall(surroundings: Surroundings, callUuid: string, options: EndOptions): Promise<void> {
  const { product, reason, json } = options
  const answer = await askService<{ call: CallView }>(surroundings, options, {
    method: 'POST',
    path: `calls/${encodeURIComponent(callUuid)}/end`,
    body: reason === undefined ? {} : { reason },
  })
  if (answer === undefined)
    throw new CommandFailure(exitCodes.negative, `The product ${product} has no call ${callUuid}.`)
  const { call } = answer
  if (json) return printJson(surroundings, { success: true, call })
  surroundings.out(`The call ${call.call_uuid} is over: ${call.status}, ${call.end_reason}.\n`)
}
