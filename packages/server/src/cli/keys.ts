/** `ringwire keys …`: product keys of application backends [TOK4]. */
import type { Command } from 'commander'
import type { ProductKey, ProductStore } from '../ports/product-store.ts'
import { isRotatable, keyView, longestGraceS, newKeyId, newSecret, productRule, usualGraceS } from '../products/keys.ts'
import { hashSecret } from '../products/product-auth.ts'
import {
  CommandFailure,
  exitCodes,
  printFields,
  printJson,
  printTable,
  type Surroundings,
  type Tones,
  visible,
  withNewStore,
  withStore,
} from './command.ts'
import { type ConfirmOptions, confirm, withYes } from './confirm.ts'
import { keyId, keyIdRule, products, whole } from './options.ts'
import { findId } from './short-ids.ts'
import { placeOfKeys } from './signing.ts'
import { shownTime, withExact } from './times.ts'

/** Of the states of keys. */
const tones: Tones = { enabled: 'good', disabled: 'bad' }

export function addKeyCommands(program: Command, surroundings: Surroundings): void {
  const keys = program.command('keys').description('Product keys, with which application backends ask for tokens.')
  keys
    .command('create')
    .description('Make a key. Its secret is only shown once; the store keeps a hash of it.')
    .requiredOption(
      '--product <name>',
      `a product of the key; give it several times for several. ${productRule}`,
      products,
    )
    .option('--key-id <id>', `the ID of the key, ${keyIdRule} (default: a random one)`, keyId)
    .option('--json', 'print JSON instead of text')
    .action((options) => create(surroundings, options))
  withExact(keys.command('list').description('List the keys.'))
    .option('--json', 'print JSON instead of text')
    .action((options) => list(surroundings, options))
  keys
    .command('disable <key-id>')
    .description(
      'Refuse a key from now on, and the tokens that were issued with it; their sockets are closed within a second.',
    )
    .action((id: string) => setDisabled(surroundings, id, true))
  keys
    .command('enable <key-id>')
    .description('Accept a disabled key again, and its tokens.')
    .action((id: string) => setDisabled(surroundings, id, false))
  withYes(keys.command('rotate <key-id>'))
    .description(
      'Give a key a new secret, which is only shown once. The old one stays valid for a while; --grace 0 asks first, in a terminal.',
    )
    .option(
      '--grace <seconds>',
      'how long the old secret stays valid, in seconds, 0 to 7776000',
      whole(0, longestGraceS),
      usualGraceS,
    )
    .option('--json', 'print JSON instead of text')
    .action((id: string, options) => rotate(surroundings, id, options))
}

interface CreateOptions {
  product: string[]
  keyId?: string
  json?: boolean
}

async function create(surroundings: Surroundings, options: CreateOptions): Promise<void> {
  const id = options.keyId ?? newKeyId()
  const secret = newSecret()
  const products = [...new Set(options.product)]
  await withNewStore(surroundings, async (store, config) => {
    const now = surroundings.now()
    if ((await store.products.findKey(id, now)) !== undefined) {
      throw new CommandFailure(
        exitCodes.failed,
        `There is already a key ${id}; ringwire keys rotate gives it a new secret.`,
      )
    }
    await store.products.putKey({ keyId: id, secretHash: hashSecret(secret), products, origin: 'cli' }, now)
    if (!options.json) surroundings.err(`Stored in ${placeOfKeys(config)}\n`)
  })
  if (options.json) return printJson(surroundings, { key_id: id, secret, products })
  printFields(surroundings, [
    ['Key ID', id],
    ['Secret', secret],
    ['Products', products.join(', ')],
  ])
  surroundings.err(
    'The secret is not shown again. Keep it in the application backend, never in a client. The environment of the backend has\n' +
      'them as RINGWIRE_KEY_ID and RINGWIRE_KEY_SECRET.\n',
  )
}

async function list(surroundings: Surroundings, options: { json?: boolean; exact?: boolean }): Promise<void> {
  const keys = await withStore(surroundings, (store) => store.products.listKeys(surroundings.now()))
  if (options.json) return printJson(surroundings, keys.map(keyView))
  if (keys.length === 0) return surroundings.err('There are no keys yet: ringwire keys create --product <name>\n')
  const rows = keys.map((key) => {
    const { key_id, products, state, origin, created_at } = keyView(key)
    return [key_id, products.join(', '), state, origin, shownTime(surroundings, created_at, options.exact)]
  })
  printTable(surroundings, ['KEY ID', 'PRODUCTS', 'STATE', 'ORIGIN', 'CREATED'], rows, tones)
  const demo = keys.find(({ origin }) => origin === 'demo')
  if (demo !== undefined) surroundings.err(`${demo.keyId} is refused by a service without RINGWIRE_DEMO.\n`)
}

async function setDisabled(surroundings: Surroundings, typed: string, disabled: boolean): Promise<void> {
  const id = await withStore(surroundings, async (store) => {
    const key = await requireKey(store.products, typed, surroundings.now())
    await store.products.setDisabled(key.keyId, disabled, surroundings.now())
    if (key.origin === 'bootstrap') {
      surroundings.err(
        `${key.keyId} comes from RINGWIRE_BOOTSTRAP_KEYS: the next start of the service follows that list again.\n`,
      )
    }
    return key.keyId
  })
  surroundings.err(`${id} is ${disabled ? 'disabled' : 'enabled'}.\n`)
}

async function rotate(
  surroundings: Surroundings,
  typed: string,
  options: ConfirmOptions & { grace: number; json?: boolean },
): Promise<void> {
  const secret = newSecret()
  const now = surroundings.now()
  const oldValidUntil = now + options.grace * 1000
  const id = await withStore(surroundings, async (store) => {
    const key = await requireKey(store.products, typed, now)
    const { keyId: id } = key
    if (!isRotatable(key)) {
      const where = key.origin === 'bootstrap' ? 'in RINGWIRE_BOOTSTRAP_KEYS' : 'by the demo'
      throw new CommandFailure(exitCodes.failed, `The secret of ${id} is set ${where}: change it there.`)
    }
    if (options.grace === 0) await confirm(surroundings, `The old secret of ${id} stops working at once.`, options)
    await store.products.rotateKey(id, hashSecret(secret), oldValidUntil, now)
    return id
  })
  const until = new Date(oldValidUntil).toISOString()
  if (options.json) return printJson(surroundings, { key_id: id, secret, old_secret_valid_until: until })
  printFields(
    surroundings,
    [
      ['Key ID', id],
      ['Secret', secret],
    ],
    'Products'.length,
  )
  surroundings.err(`The secret is not shown again. The old one is valid until ${until}.\n`)
}

async function requireKey(products: Pick<ProductStore, 'listKeys'>, typed: string, now: number): Promise<ProductKey> {
  const keys = await products.listKeys(now)
  const ids = keys.map(({ keyId }) => keyId)
  const id = findId(typed, ids)
  const key = keys.find(({ keyId }) => keyId === id)
  if (key !== undefined) return key
  const there =
    ids.length === 0 ? 'There are no keys: ringwire keys create --product <name>' : `Keys: ${ids.join(', ')}.`
  throw new CommandFailure(exitCodes.negative, visible(`There is no key ${typed}. ${there}`))
}
