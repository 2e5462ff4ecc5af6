/** `ringwire participant …`: somebody is shown, sent away or erased, as by the backend of the product. */
import type { ParticipantErased, ParticipantView } from '@ringwire/protocol/backend'
import { isDotSegment } from '@ringwire/protocol/text'
import { type Command, Option } from 'commander'
import { readUntil } from '../participants/participants.ts'
import { participantHash } from '../ports/session-id.ts'
import { type AskOptions, askService, withServiceOptions } from './asking.ts'
import { recordChange } from './audited-store.ts'
import { CommandFailure, exitCodes, printJson, printTable, type Surroundings, visible, withStore } from './command.ts'
import { confirm, withYes } from './confirm.ts'
import { requireKnown } from './known-products.ts'
import { name } from './options.ts'
import { shownTime, withExact } from './times.ts'

interface DisconnectOptions {
  product: string
  role?: string
  user?: string
  until?: string
  yes?: boolean
  json?: boolean
}

export function addParticipantCommands(program: Command, surroundings: Surroundings): void {
  const participant = program.command('participant').description('Participants of calls.')
  const asking = (command: string, description: string) =>
    withServiceOptions(
      participant
        .command(command)
        .description(description)
        .argument('<role>', 'role of the participant', name)
        .argument('<user>', 'user_id of the participant', name)
        .requiredOption('--product <name>', 'product namespace', name),
    ).option('--json', 'print the JSON of the REST answer instead of text')
  withExact(
    asking(
      'show',
      'Whether a participant is connected, with which devices, and its live calls. Asks the running service, with a product key.',
    ),
  ).action((role, user, options) => show(surroundings, role, user, options))
  withYes(
    asking(
      'erase',
      'Erase everything that is kept of a participant, for good: calls keep their times, without names. It asks first; a script gives --yes. Asks the running service, with a product key.',
    ),
  ).action((role, user, options) => erase(surroundings, role, user, options))
  withYes(participant.command('disconnect'))
    .description(
      'Close the sockets of a participant, revoke its tokens, forget its devices. A running service hears of it at once.',
    )
    .usage('[options] <role> <user>')
    .argument('[role]', 'role of the participant', name)
    .argument('[user]', 'user_id of the participant', name)
    .requiredOption('--product <name>', 'product namespace', name)
    .option(
      '--until <instant>',
      'also refuse tokens that are issued before this time, as 2026-03-01T09:00:00Z, in ten years at the latest; asks first, in a terminal (default: now)',
    )
    .option('--json', 'print the JSON of the REST answer instead of text')
    // As it was before it took arguments: scripts go on.
    .addOption(new Option('--role <role>').argParser(name).hideHelp())
    .addOption(new Option('--user <id>').argParser(name).hideHelp())
    .action((role, user, options) => disconnect(surroundings, role ?? options.role, user ?? options.user, options))
}

async function disconnect(
  surroundings: Surroundings,
  role: string | undefined,
  userId: string | undefined,
  options: DisconnectOptions,
): Promise<void> {
  const { product, json } = options
  if (role === undefined || userId === undefined)
    throw new CommandFailure(
      exitCodes.usage,
      'Give a role and a user: ringwire participant disconnect customer ann --product shop',
    )
  const now = Date.now()
  const until = readUntil(options.until, now)
  if (typeof until === 'string') throw new CommandFailure(exitCodes.usage, `--until ${until}`)
  const before = Math.max(now, until)
  const participant = { product, role, userId }
  await withStore(surroundings, async (store, config) => {
    const { products, devices } = store
    await requireKnown(surroundings, store, config, product)
    if (before > now) {
      const what = `Tokens of ${role}/${userId} that are issued before ${new Date(before).toISOString()} will not count.`
      await confirm(surroundings, what, options)
    }
    await products.revoke(participantHash(participant), before, now)
    // As the server API does: a participant who may come back registers again [PUSH1].
    await devices.forgetAll(participant)
    const detail = before > now ? { until: new Date(before).toISOString() } : {}
    await recordChange(store, surroundings, {
      ...{ action: 'participant.disconnect', product, participant: { role, userId }, detail },
    })
  })
  const tokensFrom = new Date(before).toISOString()
  if (json) return printJson(surroundings, { success: true, tokens_from: tokensFrom })
  surroundings.out(`Tokens of ${role}/${userId} that were issued before ${tokensFrom} do not count any more.\n`)
}

interface AskingOptions extends AskOptions {
  yes?: boolean
  exact?: boolean
  json?: boolean
}

/** A participant in the path, or in the query if a path cannot carry its name [ID3]. */
function askedOf(role: string, user: string): { path: string; query?: Readonly<Record<string, string>> } {
  if (isDotSegment(role) || isDotSegment(user)) return { path: 'participants', query: { role, user_id: user } }
  return { path: `participants/${encodeURIComponent(role)}/${encodeURIComponent(user)}` }
}

/** A large erasure takes minutes. The service answers that it goes on, and the command asks again. */
const eraseMs = 10 * 60_000

async function show(surroundings: Surroundings, role: string, user: string, options: AskingOptions): Promise<void> {
  const asked = { method: 'GET', ...askedOf(role, user) } as const
  const view = await askService<ParticipantView>(surroundings, options, asked)
  if (view === undefined) throw nobody(role, user)
  if (options.json) return printJson(surroundings, view)
  const { online, sessions, devices, live_calls } = view
  const { terminal } = surroundings
  const state = online ? 'online' : 'offline'
  surroundings.out(`${visible(`${role}/${user}`)} is ${terminal?.paint(online ? 'good' : 'warn', state) ?? state}.\n`)
  const time = (at: string) => shownTime(surroundings, at, options.exact)
  const rows = [
    ...sessions.map((one) => ['session', time(one.connected_at), one.device_id ?? '', one.session_id]),
    ...devices.map((one) => ['device', time(one.registered_at), one.device_id, one.platform]),
    ...live_calls.map((one) => ['call', time(one.started_at), one.status, one.call_uuid]),
  ]
  if (rows.length === 0) {
    surroundings.err(`${visible(`Nobody with role ${role} and user ${user} is connected, registered or in a call.`)}\n`)
  }
  if (rows.length > 0) printTable(surroundings, ['WHAT', 'SINCE', 'OF', 'WHICH'], rows, {})
}

async function erase(surroundings: Surroundings, role: string, user: string, options: AskingOptions): Promise<void> {
  await confirm(surroundings, `This erases what ${options.product} has of ${role}/${user}.`, options, true)
  const asked = { method: 'DELETE', ...askedOf(role, user), limitMs: eraseMs, asksAgain: true } as const
  const erased = await askService<ParticipantErased>(surroundings, options, asked)
  if (erased === undefined) throw nobody(role, user)
  if (options.json) return printJson(surroundings, erased)
  const { calls, devices, timeline_entries, webhook_deliveries } = erased
  if (calls + devices + timeline_entries + webhook_deliveries === 0) {
    surroundings.err(`${visible(`Nothing was kept of role ${role}, user ${user}.`)}\n`)
  }
  surroundings.out(
    `${role}/${user} is erased: of ${calls} calls, ${devices} devices, ${timeline_entries} timeline entries, ${webhook_deliveries} webhooks.\n`,
  )
}

/** The service takes no such name. */
const nobody = (role: string, user: string) =>
  new CommandFailure(
    exitCodes.negative,
    visible(`There can be no participant with role ${role} and user ${user}: each is 1 to 255 bytes, without NUL.`),
  )
