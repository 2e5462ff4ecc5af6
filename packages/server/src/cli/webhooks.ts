/** `ringwire webhooks …`: where the webhooks of a product go [HOOK1]. */
import { type Command, InvalidArgumentError } from 'commander'
import type { Config } from '../config/config.ts'
import { createAddressGuard } from '../outgoing/addresses.ts'
import type { ProductStore } from '../ports/product-store.ts'
import { isDeliveryId, type WebhookEndpoint } from '../ports/webhooks.ts'
import {
  createWebhookEndpoints,
  type EndpointInput,
  shownDelivery,
  shownEndpoint,
  type WebhookEndpoints,
} from '../services/webhook-endpoints.ts'
import {
  CommandFailure,
  exitCodes,
  printFields,
  printJson,
  printTable,
  type Surroundings,
  type Tones,
  withNewStore,
  withStore,
} from './command.ts'
import { product as productName, whole } from './options.ts'
import { warnWithoutKey } from './signing.ts'

const tones: Tones = { enabled: 'good', disabled: 'bad', delivered: 'good', failed: 'bad' }

interface Options {
  readonly product: string
  readonly json?: boolean
}

interface Changes {
  readonly url?: string
  readonly events?: string
  readonly description?: string
}

interface DeliveriesOptions extends Options {
  readonly failed?: boolean
  readonly limit: number
  readonly cursor?: string
}

const eventsHelp = 'types of events, with commas between them, or all: every type of calls'

export function addWebhookCommands(program: Command, surroundings: Surroundings): void {
  const webhooks = program.command('webhooks').description('Webhook endpoints: where the events of calls are sent.')
  const add = (text: string, description: string) =>
    webhooks
      .command(text)
      .description(description)
      .requiredOption('--product <name>', 'the product whose calls are told', productName)
      .option('--json', 'print JSON instead of text')

  add('create <url>', 'Add an endpoint. Its secret is shown this once.')
    .option('--events <types>', `${eventsHelp} (default: all)`)
    .option('--description <text>', 'what it is for, at most 255 characters (default: none)')
    .action((url: string, options: Options & Changes) => create(surroundings, url, options))
  add('list', 'List the endpoints of a product.').action((options: Options) => list(surroundings, options))
  add('set <id>', 'Change an endpoint; what is not given stays as it is.')
    .option('--url <url>', 'where events are sent (default: as it is)')
    .option('--events <types>', `${eventsHelp} (default: as it is)`)
    .option('--description <text>', 'what it is for, at most 255 characters; empty: nothing (default: as it is)')
    .action((id: string, options: Options & Changes) => set(surroundings, id, options))
  for (const enabled of [true, false]) {
    const [verb, what] = enabled
      ? ['enable', 'Send events to an endpoint again.']
      : ['disable', 'Send nothing more to an endpoint.']
    add(`${verb} <id>`, what).action((id: string, options: Options) => setEnabled(surroundings, id, options, enabled))
  }
  add('rotate <id>', 'Give an endpoint a new secret, shown this once. For 24 hours the old one signs, too.').action(
    (id: string, options: Options) => rotate(surroundings, id, options),
  )
  add('delete <id>', 'Remove an endpoint with all of its deliveries.').action((id: string, options: Options) =>
    remove(surroundings, id, options),
  )
  add('test <id>', 'Have the service send a webhook.test.').action((id: string, options: Options) =>
    test(surroundings, id, options),
  )
  add('deliveries <id>', 'List what was sent, the newest first, and what was answered.')
    .option('--failed', 'only what failed for good')
    .option('--limit <count>', 'how many at most, 1 to 1000', whole(1, 1_000), 50)
    .option('--cursor <id>', 'only what is older than this delivery (default: the newest ones)', cursor)
    .action((id: string, options: DeliveriesOptions) => deliveries(surroundings, id, options))
  add('retry <id> <delivery>', 'Have the service send a delivery that is over once more, under the same ID.').action(
    (id: string, deliveryId: string, options: Options) => retry(surroundings, id, deliveryId, options),
  )
}

type Work<T> = (webhooks: WebhookEndpoints, products: ProductStore, config: Config) => T | Promise<T>

/** The service that runs beside finds what was changed within a second. */
function withWebhooks<T>(surroundings: Surroundings, work: Work<T>, mayMake = false): Promise<T> {
  const open = mayMake ? withNewStore : withStore
  return open(surroundings, (store, config) =>
    work(
      createWebhookEndpoints({
        store: store.webhooks,
        guard: createAddressGuard(config.webhookAllow),
        now: surroundings.now,
        onChanged: async () => {},
      }),
      store.products,
      config,
    ),
  )
}

const none = (id: string, product: string) =>
  new CommandFailure(exitCodes.negative, `The product ${product} has no webhook endpoint ${id}.`)

async function create(
  surroundings: Surroundings,
  url: string,
  { product, json, ...given }: Options & Changes,
): Promise<void> {
  const input = { ...inputOf(given), url }
  const add: Work<WebhookEndpoint> = async (webhooks, products, config) => {
    // Before it is there: its secret is shown once, whatever fails after that.
    await warnWithoutKey(surroundings, products, config, product)
    const created = await webhooks.create(product, input)
    if (!created.ok) throw new CommandFailure(exitCodes.failed, withHint(created.message))
    return created.endpoint
  }
  showSecret(surroundings, await withWebhooks(surroundings, add, true), json)
}

/** A backend is told the same, without the setting: that is the operator's. */
function withHint(message: string): string {
  const isOfUrl = message.startsWith('url must ')
  return isOfUrl ? `${message} RINGWIRE_WEBHOOK_ALLOW opens other addresses; this command reads it, too.` : message
}

/** As the service reads it: null is what a new endpoint has. */
function inputOf({ url, events, description }: Changes): EndpointInput {
  const types = events === 'all' ? null : events?.split(',').map((type) => type.trim())
  return { url, events: types, description: description === '' ? null : description }
}

function showSecret(surroundings: Surroundings, endpoint: WebhookEndpoint, json: boolean | undefined): void {
  const { id, url, secret } = endpoint
  if (json) {
    printJson(surroundings, { ...shownEndpoint(endpoint), secret })
    return
  }
  printFields(surroundings, [
    ['ID', id],
    ['URL', url],
    ['Secret', secret],
  ])
  surroundings.err('The secret is not shown again. Keep it where the webhooks are received.\n')
}

async function list(surroundings: Surroundings, { product, json }: Options): Promise<void> {
  const endpoints = await withWebhooks(surroundings, (webhooks) => webhooks.list(product))
  if (json) return printJson(surroundings, endpoints.map(shownEndpoint))
  if (endpoints.length === 0) return surroundings.err(`The product ${product} has no webhook endpoints.\n`)
  printEndpoints(surroundings, endpoints)
}

function printEndpoints(surroundings: Surroundings, endpoints: readonly WebhookEndpoint[]): void {
  const rows = endpoints.map(({ id, url, enabled, events, description }) => [
    id,
    url,
    enabled ? 'enabled' : 'disabled',
    events?.join(', ') ?? 'all',
    description ?? '',
  ])
  printTable(surroundings, ['ID', 'URL', 'STATE', 'EVENTS', 'DESCRIPTION'], rows, tones)
}

async function change(
  surroundings: Surroundings,
  id: string,
  product: string,
  input: EndpointInput,
): Promise<WebhookEndpoint> {
  const changed = await withWebhooks(surroundings, (webhooks) => webhooks.change(product, id, input))
  if (changed === undefined) throw none(id, product)
  if (!changed.ok) throw new CommandFailure(exitCodes.failed, withHint(changed.message))
  return changed.endpoint
}

async function set(
  surroundings: Surroundings,
  id: string,
  { product, json, ...given }: Options & Changes,
): Promise<void> {
  if (Object.keys(given).length === 0) {
    throw new CommandFailure(exitCodes.usage, 'Give --url, --events or --description.')
  }
  const endpoint = await change(surroundings, id, product, inputOf(given))
  if (json) return printJson(surroundings, shownEndpoint(endpoint))
  printEndpoints(surroundings, [endpoint])
}

async function setEnabled(
  surroundings: Surroundings,
  id: string,
  { product, json }: Options,
  enabled: boolean,
): Promise<void> {
  const endpoint = await change(surroundings, id, product, { enabled })
  if (json) return printJson(surroundings, shownEndpoint(endpoint))
  surroundings.err(`${id} is ${enabled ? 'enabled' : 'disabled'}.\n`)
}

async function rotate(surroundings: Surroundings, id: string, { product, json }: Options): Promise<void> {
  const endpoint = await withWebhooks(surroundings, (webhooks) => webhooks.rotate(product, id))
  if (endpoint === undefined) throw none(id, product)
  showSecret(surroundings, endpoint, json)
}

async function remove(surroundings: Surroundings, id: string, { product, json }: Options): Promise<void> {
  if (!(await withWebhooks(surroundings, (webhooks) => webhooks.remove(product, id)))) throw none(id, product)
  if (json) return printJson(surroundings, { id, deleted: true })
  surroundings.err(`${id} is removed.\n`)
}

async function test(surroundings: Surroundings, id: string, { product, json }: Options): Promise<void> {
  const deliveryId = await withWebhooks(surroundings, (webhooks) => webhooks.test(product, id))
  if (deliveryId === undefined) throw none(id, product)
  showQueued(surroundings, deliveryId, json)
}

async function retry(
  surroundings: Surroundings,
  id: string,
  deliveryId: string,
  { product, json }: Options,
): Promise<void> {
  const isQueued = await withWebhooks(surroundings, async (webhooks) => {
    if ((await webhooks.find(product, id)) === undefined) throw none(id, product)
    return webhooks.retry(product, id, deliveryId)
  })
  if (!isQueued) {
    throw new CommandFailure(exitCodes.negative, `The endpoint ${id} has no delivery ${deliveryId} that is over.`)
  }
  showQueued(surroundings, deliveryId, json)
}

function showQueued(surroundings: Surroundings, deliveryId: string, json: boolean | undefined): void {
  if (json) {
    printJson(surroundings, { delivery_id: deliveryId })
    return
  }
  surroundings.out(`${deliveryId}\n`)
  surroundings.err('The service sends it; ringwire webhooks deliveries says what became of it.\n')
}

async function deliveries(
  surroundings: Surroundings,
  id: string,
  { product, json, failed, limit, cursor: before }: DeliveriesOptions,
): Promise<void> {
  const query = { status: failed ? ('failed' as const) : undefined, limit, before }
  const page = await withWebhooks(surroundings, (webhooks) => webhooks.deliveries(product, id, query))
  if (page === undefined) throw none(id, product)
  const shown = page.records.map(shownDelivery)
  if (json) return printJson(surroundings, shown)
  if (shown.length === 0) return surroundings.err('There are none.\n')
  const rows = shown.map((one) => [
    one.id,
    one.type,
    one.status,
    String(one.attempts),
    one.created_at,
    String(one.response_status ?? one.response ?? ''),
  ])
  printTable(surroundings, ['ID', 'TYPE', 'STATE', 'ATTEMPTS', 'CREATED', 'ANSWER'], rows, tones)
  if (page.next !== null) surroundings.err(`More with --cursor ${page.next}\n`)
}

/** A page goes on after the ID of the last delivery of the page before. */
function cursor(text: string): string {
  if (isDeliveryId(text)) return text
  throw new InvalidArgumentError('It must be the ID of a delivery.')
}
