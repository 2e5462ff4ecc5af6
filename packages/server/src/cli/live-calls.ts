/** `ringwire call tail` and `ringwire call end`: calls as they happen. */
import type { CallPage, CallView } from '@ringwire/protocol/backend'
import type { Command } from 'commander'
import { type FollowedEntry, followCalls } from '../history/followed-calls.ts'
import { type AskOptions, askService, withKey, withServiceOptions } from './asking.ts'
import { CommandFailure, exitCodes, printJson, type Surroundings, type Tones, visible, withStore } from './command.ts'
import { requireKnown } from './known-products.ts'
import { name } from './options.ts'
import { fewest, findId } from './short-ids.ts'
import { shellWord } from './signing.ts'

/** Of the statuses of calls. */
export const statusTones: Tones = {
  ...{ ringing: 'good', accepted: 'good', connected: 'good' },
  ...{ missed: 'bad', rejected: 'warn', cancelled: 'warn', busy: 'warn' },
}

/** How often the store is read, in ms. */
const pollMs = 500

export function addLiveCallCommands(call: Command, surroundings: Surroundings): void {
  call
    .command('tail')
    .description('Show what happens to the calls of a product from now on, until Ctrl-C.')
    .requiredOption('--product <name>', 'product namespace', name)
    .option('--json', 'print a JSON object a line instead of text')
    .action((options) => tail(surroundings, options))
  const end = call
    .command('end')
    .description(
      'End a call, as the backend of its product can: both sides hear of it. Asks the running service, with a product key.',
    )
    .argument('<call>', 'its call_uuid, or the first characters of it, at least 4')
    .requiredOption('--product <name>', 'product namespace', name)
    .option('--reason <text>', 'the reason; kept with the call, and shown to nobody in it (default: none)')
  withServiceOptions(end)
    .option('--json', 'print the JSON of the REST answer instead of text')
    .action((callUuid, options) => endCall(surroundings, callUuid, options))
}

export function noCall(product: string, typed: string): CommandFailure {
  const short = typed.length < fewest ? ` An id may be typed short, with at least ${fewest} characters.` : ''
  const message = `The product ${product} has no call ${typed}.${short} ringwire call list --product ${shellWord(product)} shows its calls.`
  return new CommandFailure(exitCodes.negative, visible(message))
}

/** Only the calls that go on are looked through for a short id, so one that is over may begin with it. */
function noLiveCall(product: string, typed: string): CommandFailure {
  const message = `No live call of ${product} begins with ${typed}. ringwire call list --product ${shellWord(product)} --status live shows the live ones.`
  return new CommandFailure(exitCodes.negative, visible(message))
}

interface TailOptions {
  product: string
  json?: boolean
}

async function tail(surroundings: Surroundings, { product, json }: TailOptions): Promise<void> {
  await withStore(surroundings, async (store, config) => {
    await requireKnown(surroundings, store, config, product)
    const { calls } = store
    const followed = await followCalls({ calls, product, since: surroundings.now() })
    surroundings.err(`Calls of ${product} from now on; Ctrl-C ends.\n`)
    for (;;) {
      for (const entry of await followed.next()) {
        surroundings.out(`${json ? visible(JSON.stringify(entry)) : lineOf(surroundings, entry)}\n`)
      }
      await Bun.sleep(pollMs)
    }
  })
}

function lineOf({ terminal }: Surroundings, { at, call_uuid, what, who, detail }: FollowedEntry): string {
  const by = who === undefined ? '' : ` by ${who.role}/${who.user_id}`
  const reason = detail.end_reason === undefined ? '' : ` (${detail.end_reason})`
  const tone = Object.hasOwn(statusTones, what) ? statusTones[what] : undefined
  const shown = terminal === undefined || tone === undefined ? visible(what) : terminal.paint(tone, visible(what))
  return `${visible(`${at}  ${call_uuid}`)}  ${shown}${visible(`${reason}${by}`)}`
}

interface EndOptions extends AskOptions {
  reason?: string
  json?: boolean
}

async function endCall(surroundings: Surroundings, typed: string, options: EndOptions): Promise<void> {
  const { product, reason, json } = options
  const asking = await withKey(surroundings, options)
  const callUuid = await fullUuid(surroundings, typed, asking)
  const answer = await askService<{ call: CallView }>(surroundings, asking, {
    method: 'POST',
    path: `calls/${encodeURIComponent(callUuid)}/end`,
    body: reason === undefined ? {} : { reason },
  })
  if (answer === undefined) throw notFound(product, typed, callUuid)
  const { call } = answer
  if (json) return printJson(surroundings, { success: true, call })
  surroundings.out(`The call ${call.call_uuid} is over: ${call.status}, ${call.end_reason}.\n`)
}

/** `callUuid`: what was asked for. */
export function notFound(product: string, typed: string, callUuid: string): CommandFailure {
  return callUuid === typed && isShort(typed) ? noLiveCall(product, typed) : noCall(product, typed)
}

const isShort = (typed: string) => typed.length >= fewest && /^[0-9a-f-]{1,35}$/i.test(typed)

/** The uuid of the live call that begins with the typed characters; the typed text itself if none does. */
export async function fullUuid(surroundings: Surroundings, typed: string, options: AskOptions): Promise<string> {
  if (!isShort(typed)) return typed
  const uuids: string[] = []
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const query = { status: 'live', limit: '100', ...(cursor !== undefined && { cursor }) }
    const page = await askService<CallPage>(surroundings, options, { method: 'GET', path: 'calls', query })
    uuids.push(...(page?.data ?? []).map(({ call_uuid }) => call_uuid))
    cursor = page?.next_cursor ?? null
  }
  return findId(typed, uuids) ?? typed
}
