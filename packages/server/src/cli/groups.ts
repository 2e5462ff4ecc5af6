/** `ringwire groups …`: participants of one role who can be called together [GROUP1]. */
import { type GroupStrategy, groupLimits, groupStrategies } from '@ringwire/protocol/groups'
import { type Command, Option } from 'commander'
import type { Group, GroupName } from '../ports/groups.ts'
import { readGroup, shownGroup, shownSummary } from '../products/groups.ts'
import {
  CommandFailure,
  exitCodes,
  printFields,
  printJson,
  printTable,
  type Surroundings,
  visible,
  withNewStore,
  withStore,
} from './command.ts'
import { type ConfirmOptions, confirm, withYes } from './confirm.ts'
import { requireKnown } from './known-products.ts'
import { participantName, participantNames, product as productName, whole } from './options.ts'
import { warnWithoutKey } from './signing.ts'

interface Options {
  readonly product: string
  readonly json?: boolean
}

interface Changes {
  readonly member?: string[]
  readonly strategy?: GroupStrategy
  readonly memberRingMs?: number
  readonly ringMs?: number
}

export function addGroupCommands(program: Command, surroundings: Surroundings): void {
  const groups = program.command('groups').description('Groups of participants who can be called together.')
  const add = (command: string, description: string) =>
    groups
      .command(command)
      .description(description)
      .requiredOption('--product <name>', 'the product of the groups', productName)
      .option('--json', 'print JSON instead of text')
  const one = (command: string, description: string) =>
    add(command, description)
      .argument('<role>', 'role of the members', participantName)
      .argument('<group>', 'name of the group', participantName)
  const { memberRingMs, ringMs } = groupLimits

  add('list', 'List the groups of a product, without their members.').action((options: Options) =>
    list(surroundings, options),
  )
  one('show', 'Show a group with its members.').action((role: string, group: string, options: Options) =>
    show(surroundings, { product: options.product, role, name: group }, options),
  )
  one('set', 'Make a group, or change it; options that are not given change nothing.')
    .option('--member <user>', 'user_id of a member; give it several times (default: as it is)', participantNames)
    .addOption(
      new Option('--strategy <how>', 'which members ring when; at first all (default: as it is)').choices(
        groupStrategies,
      ),
    )
    .option(
      '--member-ring-ms <ms>',
      `how long one member rings, ${memberRingMs.min} to ${memberRingMs.max}; at first ${memberRingMs.default} (default: as it is)`,
      whole(memberRingMs.min, memberRingMs.max),
    )
    .option(
      '--ring-ms <ms>',
      `how long a call of the group rings in all, ${ringMs.min} to ${ringMs.max}; at first ${ringMs.default} (default: as it is)`,
      whole(ringMs.min, ringMs.max),
    )
    .action((role: string, group: string, options: Options & Changes) =>
      set(surroundings, { product: options.product, role, name: group }, options),
    )
  withYes(one('remove', 'Remove a group. In a terminal it asks first.')).action(
    (role: string, group: string, options: Options & ConfirmOptions) =>
      remove(surroundings, { product: options.product, role, name: group }, options),
  )
}

const pageSize = 100

async function list(surroundings: Surroundings, { product, json }: Options): Promise<void> {
  const found = await withStore(surroundings, async (store, config) => {
    await requireKnown(surroundings, store, config, product)
    const all = []
    for (let after = { product, role: '', name: '' }; ; ) {
      const page = await store.groups.list(after, pageSize)
      all.push(...page)
      const last = page.at(-1)
      if (last === undefined || page.length < pageSize) return all
      after = last
    }
  })
  if (json) return printJson(surroundings, found.map(shownSummary))
  if (found.length === 0) return surroundings.err(`${visible(`The product ${product} has no groups.`)}\n`)
  printTable(
    surroundings,
    ['ROLE', 'GROUP', 'MEMBERS', 'STRATEGY', 'MEMBER RING MS', 'RING MS'],
    found.map(({ role, name, memberCount, strategy, memberRingMs, ringMs }) => [
      ...[role, name, String(memberCount), strategy, String(memberRingMs), String(ringMs)],
    ]),
  )
}

async function show(surroundings: Surroundings, name: GroupName, options: Options): Promise<void> {
  const group = await withStore(surroundings, async (store, config) => {
    await requireKnown(surroundings, store, config, name.product)
    return store.groups.get(name)
  })
  if (group === undefined) throw noSuchGroup(name)
  print(surroundings, group, options)
  noteEmpty(surroundings, group, options)
}

async function set(surroundings: Surroundings, name: GroupName, options: Options & Changes): Promise<void> {
  const { member, strategy, memberRingMs, ringMs } = options
  if ([member, strategy, memberRingMs, ringMs].every((value) => value === undefined))
    throw new CommandFailure(exitCodes.usage, 'Give --member, --strategy, --member-ring-ms or --ring-ms.')
  const group = await withNewStore(surroundings, async (store, config) => {
    const known = await store.groups.get(name)
    if (known === undefined && member === undefined) throw noMembers(name)
    const read = readGroup(name, {
      members: member ?? known?.members ?? [],
      strategy: strategy ?? known?.strategy ?? 'all',
      member_ring_ms: memberRingMs ?? known?.memberRingMs,
      ring_ms: ringMs ?? known?.ringMs,
    })
    if (!read.ok) throw new CommandFailure(exitCodes.failed, visible(read.message))
    await warnWithoutKey(surroundings, store.products, config, name.product)
    await store.groups.put(read.group)
    return read.group
  })
  print(surroundings, group, options)
  noteEmpty(surroundings, group, options)
}

async function remove(surroundings: Surroundings, name: GroupName, options: Options & ConfirmOptions): Promise<void> {
  const isGone = await withStore(surroundings, async (store, config) => {
    await requireKnown(surroundings, store, config, name.product)
    if ((await store.groups.get(name)) === undefined) return false
    await confirm(surroundings, `This removes the group ${name.role}/${name.name} of ${name.product}.`, options)
    return store.groups.remove(name)
  })
  if (!isGone) throw noSuchGroup(name)
  if (options.json) return printJson(surroundings, { success: true })
  surroundings.out(`${visible(`The group ${name.role}/${name.name} is removed.`)}\n`)
}

function print(surroundings: Surroundings, group: Group, { json }: Pick<Options, 'json'>): void {
  if (json) {
    printJson(surroundings, shownGroup(group))
    return
  }
  const { role, name, strategy, memberRingMs, ringMs, members } = group
  printFields(surroundings, [
    ['group', `${role}/${name}`],
    ['strategy', strategy],
    ['one rings', `${memberRingMs / 1_000} s`],
    ['in all', `${ringMs / 1_000} s`],
    ['members', members.length === 0 ? 'none' : members.join(', ')],
  ])
}

/** A backend may have put it like that: it is no error, and no call of the group will be answered. */
function noteEmpty(surroundings: Surroundings, { role, name, members }: Group, { json }: Pick<Options, 'json'>): void {
  if (json || members.length > 0) return
  const text = `The group ${name} of role ${role} has no members: a call to it rings at nobody, and is missed.`
  surroundings.err(`${visible(text)}\n`)
}

const noMembers = ({ role, name }: GroupName) =>
  new CommandFailure(
    exitCodes.usage,
    visible(
      `There is no group ${name} of role ${role} yet, and a call to one without members rings at nobody. Give --member.`,
    ),
  )

const noSuchGroup = ({ product, role, name }: GroupName) =>
  new CommandFailure(exitCodes.negative, visible(`The product ${product} has no group ${name} of role ${role}.`))
