/** `ringwire products …`: what a product sets for itself [INV2, INV5, PRES1, PRIV1, RING1]. */
import { type Command, Option } from 'commander'
import type { ProductSettings } from '../ports/product-store.ts'
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
    .description('Change settings of a product; what is not given stays as it is.')
    .addOption(
      new Option(
        '--busy <answer>',
        'what a callee in another call means for an invite; at first allow (default: as it is)',
      ).choices(['allow', 'reject']),
    )
    .option(
      '--reveal-busy <true|false>',
      'whether call.invited says callee_busy; at first false (default: as it is)',
      yesNo,
    )
    .option(
      '--ring-timeout-ms <ms>',
      'how long calls ring, in ms: 5000 to 180000, or default, that of the service (default: as it is)',
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
        'peers: participants see whether those are there whom they may call; at first off (default: as it is)',
      ).choices(['off', 'peers']),
    )
    .option('--json', 'print JSON instead of text')
    .action((product: string, options) => set(surroundings, product, options))
}

/** `default`: the service's own. */
function ringTimeout(text: string): number | 'default' {
  return text === 'default' ? text : whole(5000, 180_000)(text)
}

async function list(surroundings: Surroundings, options: { json?: boolean }): Promise<void> {
  const entries = await withStore(surroundings, (store) => store.products.listSettings())
  if (options.json) {
    const described = entries.map(({ product, settings }) => describe(product, settings))
    return printJson(surroundings, described)
  }
  if (entries.length === 0) return surroundings.err('No product has settings of its own.\n')
  printTable(
    surroundings,
    heading,
    entries.map(({ product, settings }) => row(product, settings)),
  )
}

interface SetOptions {
  busy?: ProductSettings['busy']
  revealBusy?: boolean
  ringTimeoutMs?: number | 'default'
  media?: ProductSettings['media']
  presence?: ProductSettings['presence']
  json?: boolean
}

async function set(surroundings: Surroundings, product: string, options: SetOptions): Promise<void> {
  const { json, ...given } = options
  const { busy, revealBusy, ringTimeoutMs, media, presence } = given
  if (Object.values(given).every((value) => value === undefined)) {
    throw new CommandFailure(exitCodes.usage, 'Give --busy, --reveal-busy, --ring-timeout-ms, --media or --presence.')
  }
  const settings = await withNewStore(surroundings, async (store, config) => {
    const before = await store.products.settings(product)
    const after: ProductSettings = {
      busy: busy ?? before.busy,
      revealBusy: revealBusy ?? before.revealBusy,
      ringTimeoutMs: ringTimeoutMs === 'default' ? null : (ringTimeoutMs ?? before.ringTimeoutMs),
      media: media ?? before.media,
      presence: presence ?? before.presence,
    }
    await warnWithoutKey(surroundings, store.products, config, product)
    await store.products.putSettings(product, after)
    return after
  })
  if (json) return printJson(surroundings, describe(product, settings))
  printTable(surroundings, heading, [row(product, settings)])
}

const heading = ['PRODUCT', 'BUSY', 'REVEAL BUSY', 'RING TIMEOUT MS', 'MEDIA', 'PRESENCE']

function row(product: string, settings: ProductSettings): string[] {
  const { busy, revealBusy, ringTimeoutMs, media, presence } = settings
  return [product, busy, String(revealBusy), String(ringTimeoutMs ?? 'default'), media, presence]
}

function describe(product: string, settings: ProductSettings) {
  const { busy, revealBusy, ringTimeoutMs, media, presence } = settings
  return { product, busy, reveal_busy: revealBusy, ring_timeout_ms: ringTimeoutMs, media, presence }
}
