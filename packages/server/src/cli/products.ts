/** `ringwire products …`: what a product sets for itself [HOOK5, INV2, INV5, PRES1, PRIV1, RING1, TAKE1]. */
import type { ProductChange, ProductChanged } from '@ringwire/protocol/backend'
import { type Command, Option } from 'commander'
import { createAddressGuard } from '../outgoing/addresses.ts'
import type { ProductSettings } from '../ports/product-store.ts'
import { readSettings, ringTimeoutLimits, shownSettings } from '../products/settings.ts'
import {
  CommandFailure,
  exitCodes,
  printJson,
  printTable,
  type Surroundings,
  withNewStore,
  withStore,
} from './command.ts'
import { product as productName, whole, yesNo } from './options.ts'
import { warnWithoutKey } from './signing.ts'

export function addProductCommands(program: Command, surroundings: Surroundings): void {
  const products = program.command('products').description('Settings of single products.')
  products
    .command('list')
    .description('List the products that have settings of their own.')
    .option('--json', 'print JSON instead of text')
    .action((options) => list(surroundings, options))
  products
    .command('set')
    .argument('<product>', 'the name of the product', productName)
    .description('Change settings of a product; options that are not given change nothing.')
    .addOption(
      new Option(
        '--busy <answer>',
        'what happens to an invite whose callee is in another call; at first allow (default: as it is)',
      ).choices(['allow', 'reject']),
    )
    .option(
      '--reveal-busy <true|false>',
      'whether call.invited says callee_busy; at first false (default: as it is)',
      yesNo,
    )
    .option(
      '--ring-timeout-ms <ms>',
      'how long calls ring, in ms: 5000 to 180000, or default: the value of the service (default: as it is)',
      ringTimeout,
    )
    .addOption(
      new Option(
        '--media <how>',
        "relay: media only goes through the TURN server, and peers never learn each other's address; at first all (default: as it is)",
      ).choices(['all', 'relay']),
    )
    .addOption(
      new Option(
        '--presence <who>',
        'peers: participants see which of the people they may call are there; at first off (default: as it is)',
      ).choices(['off', 'peers']),
    )
    .option(
      '--take <true|false>',
      'whether another device of a participant may take an answered call; at first true (default: as it is)',
      yesNo,
    )
    .option(
      '--invite-url <url>',
      'URL that decides on each invite before it rings, or none; prints the secret of its signatures (default: as it is)',
    )
    .addOption(
      new Option(
        '--invite-failure <answer>',
        'what becomes of an invite without a valid answer; at first refuse (default: as it is)',
      ).choices(['allow', 'refuse']),
    )
    .option('--json', 'print JSON instead of text')
    .action((product: string, options) => set(surroundings, product, options))
}

/** `default`: the service's own. */
function ringTimeout(text: string): number | 'default' {
  return text === 'default' ? text : whole(ringTimeoutLimits.min, ringTimeoutLimits.max)(text)
}

async function list(surroundings: Surroundings, options: { json?: boolean }): Promise<void> {
  const entries = await withStore(surroundings, (store) => store.products.listSettings())
  if (options.json) {
    const shown = entries.map(({ product, settings }) => shownSettings(product, settings))
    return printJson(surroundings, shown)
  }
  if (entries.length === 0) return surroundings.err('No product has settings of its own.\n')
  printTable(
    surroundings,
    heading,
    entries.map(({ product, settings }) => row(product, settings)),
  )
}

interface SetOptions extends Omit<ProductChange, 'reveal_busy' | 'ring_timeout_ms' | 'invite_url' | 'invite_failure'> {
  readonly revealBusy?: boolean
  readonly ringTimeoutMs?: number | 'default'
  readonly inviteUrl?: string
  readonly inviteFailure?: ProductChange['invite_failure']
  readonly json?: boolean
}

async function set(surroundings: Surroundings, product: string, options: SetOptions): Promise<void> {
  const { json, ...given } = options
  if (Object.values(given).every((value) => value === undefined)) {
    const names =
      '--busy, --reveal-busy, --ring-timeout-ms, --media, --presence, --take, --invite-url or --invite-failure'
    throw new CommandFailure(exitCodes.usage, `Give ${names}.`)
  }
  const { busy, revealBusy, ringTimeoutMs, media, presence, take, inviteUrl, inviteFailure } = given
  const change = {
    ...{ busy, media, presence, take, reveal_busy: revealBusy },
    ring_timeout_ms: ringTimeoutMs === 'default' ? null : ringTimeoutMs,
    ...{ invite_url: inviteUrl === 'none' ? null : inviteUrl, invite_failure: inviteFailure },
  }
  const settings = await withNewStore(surroundings, async (store, config) => {
    const read = readSettings(change, createAddressGuard(config.webhookAllow))
    if (!read.ok) throw new CommandFailure(exitCodes.failed, read.message)
    await warnWithoutKey(surroundings, store.products, config, product)
    return store.products.changeSettings(product, read.changes)
  })
  const secret = inviteUrl === undefined ? null : settings.inviteSecret
  if (json) {
    const shown = { ...shownSettings(product, settings), ...(secret !== null && { invite_secret: secret }) }
    return printJson(surroundings, shown satisfies ProductChanged)
  }
  printTable(surroundings, heading, [row(product, settings)])
  if (secret !== null) surroundings.out(`\nQuestions are signed with ${secret}\n`)
}

const heading = [
  'PRODUCT',
  'BUSY',
  'REVEAL BUSY',
  'RING TIMEOUT MS',
  'MEDIA',
  'PRESENCE',
  'TAKE',
  'INVITES DECIDED BY',
  'ELSE',
]

function row(product: string, settings: ProductSettings): string[] {
  const { busy, revealBusy, ringTimeoutMs, media, presence, take, inviteUrl, inviteFailure } = settings
  const hook = inviteUrl === null ? ['', ''] : [inviteUrl, inviteFailure]
  return [product, busy, String(revealBusy), String(ringTimeoutMs ?? 'default'), media, presence, String(take), ...hook]
}
