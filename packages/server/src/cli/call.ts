/** `ringwire call …`: what the store says about calls. */
import type { CallView, RefusedInvite, TimelineEntry } from '@ringwire/protocol/backend'
import type { Command } from 'commander'
import { createHistory } from '../history/history.ts'
import { createSeenCalls } from '../history/seen-calls.ts'
import { createTimelines } from '../timeline/timelines.ts'
import {
  CommandFailure,
  exitCodes,
  type OpenStore,
  printJson,
  printTable,
  type Surroundings,
  visible,
  withStore,
} from './command.ts'
import { requireKnown } from './known-products.ts'
import { addLiveCallCommands, noCall, statusTones } from './live-calls.ts'
import { name, whole } from './options.ts'
import { fewest, findId } from './short-ids.ts'
import { shownTime, withExact } from './times.ts'
import { addTransferCallCommand } from './transfer-call.ts'

interface HistoryOptions {
  product: string
  user: string
  role: string
  limit: number
  cursor?: string
  exact?: boolean
  json?: boolean
}

export function addCallCommands(program: Command, surroundings: Surroundings): void {
  const call = program.command('call').description('Calls in the store.')
  withExact(call.command('history'))
    .description('The recent calls of a participant, newest first, as the participant reads them over REST.')
    .requiredOption('--product <name>', 'product namespace', name)
    .requiredOption('--user <id>', 'user_id of the participant', name)
    .requiredOption('--role <role>', 'role of the participant', name)
    .option('--limit <number>', 'how many calls at the most, 1 to 100', whole(1, 100), 30)
    .option('--cursor <cursor>', 'the next_cursor of the previous page (default: the newest calls)')
    .option('--json', 'print the JSON of the REST answer instead of text')
    .action((options) => history(surroundings, options))
  withExact(call.command('list'))
    .description('The calls of a product, newest first, as its backend reads them over REST.')
    .requiredOption('--product <name>', 'product namespace', name)
    .option('--status <status>', 'live, or one status (default: any)')
    .option('--user <id>', 'user_id of a participant on either side; with --role (default: anybody)', name)
    .option('--role <role>', 'role of that participant (default: any)', name)
    .option(
      '--since <instant>',
      'only calls that started then or later, as 2026-03-01T09:00:00Z (default: all that are kept)',
    )
    .option('--refused', 'also the invites of that participant that were refused; not with --status')
    .option('--limit <number>', 'how many calls at the most, 1 to 100', whole(1, 100), 30)
    .option('--cursor <cursor>', 'the next_cursor of the previous page (default: the newest calls)')
    .option('--json', 'print the JSON of the REST answer instead of text')
    .action((options) => list(surroundings, options))
  call
    .command('trace')
    .description('What happened to a call, and why a phone did not ring.')
    .argument('<call>', 'its call_uuid, or the first characters of it, at least 4')
    .requiredOption('--product <name>', 'product namespace', name)
    .option('--json', 'print the JSON of the REST answer instead of text')
    .action((callUuid, options) => trace(surroundings, callUuid, options))
  addLiveCallCommands(call, surroundings)
  addTransferCallCommand(call, surroundings)
}

interface ListOptions extends Omit<HistoryOptions, 'user' | 'role'> {
  user?: string
  role?: string
  status?: string
  since?: string
  refused?: boolean
}

async function list(surroundings: Surroundings, options: ListOptions): Promise<void> {
  const { product, user: userId, limit, json, exact, refused: withRefused, ...filter } = options
  if ((userId === undefined) !== (filter.role === undefined))
    throw new CommandFailure(exitCodes.usage, 'Give --user and --role together: a participant has both.')
  const page = await withStore(surroundings, async (store, config) => {
    const found = await createSeenCalls(store).page(product, {
      ...filter,
      userId,
      limit: String(limit),
      ...(withRefused && { refused: '1' }),
    })
    if (found.ok && found.data.length === 0) await requireKnown(surroundings, store, config, product)
    return found
  })
  if (!page.ok) {
    const field = page.field === 'user_id' ? 'user' : page.field
    throw new CommandFailure(exitCodes.usage, `--${field} ${page.message}.`)
  }
  const { data, refused, next_cursor } = page
  if (json) return printJson(surroundings, { success: true, data, ...(refused && { refused }), next_cursor })
  const found = [
    ...data.map((call) => ({ at: call.started_at, cells: rowOf(call) })),
    ...(refused ?? []).map((invite) => ({ at: invite.entry.at, cells: refusedRowOf(invite) })),
  ]
  const rows = found
    .sort((a, b) => Date.parse(b.at) - Date.parse(a.at))
    .map(({ at, cells }) => [shownTime(surroundings, at, exact), ...cells])
  if (rows.length === 0) surroundings.err('No calls.\n')
  else printTable(surroundings, ['STARTED', 'STATUS', 'REASON', 'CALLER', 'CALLEE', 'CALL'], rows, statusTones)
  if (next_cursor !== null) surroundings.err(`More with --cursor ${next_cursor}\n`)
}

function rowOf({ status, end_reason, caller, callee, call_uuid }: CallView): string[] {
  return [status, end_reason ?? '', partyOf(caller), partyOf(callee), call_uuid]
}

/** Of a call to a group that no member has answered, the callee is the group [GROUP1]. */
const partyOf = ({ role, user_id, group }: { role: string; user_id: string | null; group?: string }) =>
  user_id === null && group !== undefined ? `${role}/${group} (group)` : `${role}/${user_id}`

function refusedRowOf({ call_uuid, entry: { who, detail } }: RefusedInvite): string[] {
  const from = who === undefined ? '' : `${who.role}/${who.user_id}`
  const to = detail.peer_role === undefined ? '' : `${textOf(detail.peer_role)}/`
  return ['refused', textOf(detail.code), from, to, call_uuid]
}

interface TraceOptions {
  product: string
  json?: boolean
}

async function trace(surroundings: Surroundings, typed: string, { product, json }: TraceOptions): Promise<void> {
  const shown = await withStore(surroundings, async (store, config) => {
    const found = await createTimelines(store).of(product, await fullUuid(store, product, typed))
    if (found === undefined) await requireKnown(surroundings, store, config, product)
    return found
  })
  if (shown === undefined) throw noCall(product, typed)
  if (json) return printJson(surroundings, { success: true, ...shown })
  const start = Date.parse(shown.entries[0]?.at ?? '')
  if (shown.entries[0] !== undefined) surroundings.out(`Since ${shown.entries[0].at}\n`)
  printTable(
    surroundings,
    ['AFTER', 'WHAT', 'WHO', 'DEVICE', 'DETAIL'],
    shown.entries.map((entry) => entryOf(entry, start)),
    statusTones,
  )
  surroundings.out(`${visible(shown.summary)}\n`)
}

/** The uuid that begins with the typed characters; the typed text itself if no call begins with it. */
async function fullUuid({ calls }: OpenStore, product: string, typed: string): Promise<string> {
  const start = typed.toLowerCase()
  if (start.length < fewest || !/^[0-9a-f-]{1,35}$/.test(start)) return typed
  return findId(start, await calls.beginning(product, start, mostFound)) ?? typed
}

/** Enough to say which ones begin alike. */
const mostFound = 11

function entryOf({ at, what, who, device_id, detail }: TimelineEntry, start: number): string[] {
  const after = `${((Date.parse(at) - start) / 1_000).toFixed(3)} s`
  const said = Object.entries(detail).flatMap(([key, value]) => (key === 'version' ? [] : [`${key}=${textOf(value)}`]))
  return [after, what, who === undefined ? '' : `${who.role}/${who.user_id}`, device_id ?? '', said.join(' ')]
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))

async function history(surroundings: Surroundings, options: HistoryOptions): Promise<void> {
  const { product, user, role, limit, cursor, json, exact } = options
  const page = await withStore(surroundings, async (store, config) => {
    const participant = { product, role, userId: user }
    const found = await createHistory({ calls: store.calls }).page(participant, { limit: String(limit), cursor })
    if (found.data.length === 0) await requireKnown(surroundings, store, config, product)
    return found
  })
  if (json) return printJson(surroundings, { success: true, ...page })
  if (page.data.length === 0)
    return surroundings.err(`${visible(`No calls of ${user}, role ${role}, in ${product}.`)}\n`)
  const rows = page.data.map((record) => [
    shownTime(surroundings, record.started_at, exact),
    record.direction,
    record.status,
    record.end_reason ?? '',
    record.duration_ms === null ? '' : `${Math.round(record.duration_ms / 1000)} s`,
    partyOf(record.peer),
    record.call_uuid,
  ])
  printTable(surroundings, ['STARTED', 'DIRECTION', 'STATUS', 'REASON', 'LASTED', 'PEER', 'CALL'], rows, statusTones)
  if (page.next_cursor !== null) surroundings.err(`More with --cursor ${page.next_cursor}\n`)
}
