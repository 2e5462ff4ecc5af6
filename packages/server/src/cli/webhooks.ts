/** `ringwire webhooks …`: where the webhooks of a product go [HOOK1]. */
import type { Command } from 'commander'
import { createAddressGuard } from '../outgoing/addresses.ts'
import type { WebhookEndpoint } from '../ports/webhooks.ts'
import {
  createWebhookEndpoints,
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

const tones: Tones = { enabled: 'good', disabled: 'bad', delivered: 'good', failed: 'bad' }

interface Options {
  readonly product: string
  readonly json?: boolean
}

export function addWebhookCommands(program: Command, surroundings: Surroundings): void {
  const webhooks = program.command('webhooks').description('Webhook endpoints: where the events of calls are sent.')
  const add = (text: string, description: string) =>
    webhooks
      .command(text)
      .description(description)
      .requiredOption('--product <name>', 'the product whose calls are told', productName)
      .option('--json', 'print JSON instead of text')

  add('create <url>', 'Add an endpoint. Its secret is shown this once.')
    .option('--events <types>', 'types of events, with commas between them (default: all)')
    .option('--description <text>', 'what it is for, at most 255 characters')
    .action((url: string, options: Options & { events?: string; description?: string }) =>
      create(surroundings, url, options),
    )
  add('list', 'List the endpoints of a product.').action((options: Options) => list(surroundings, options))
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
    .action((id: string, options: Options & { failed?: boolean; limit: number }) =>
      deliveries(surroundings, id, options),
    )
}

type Work<T> = (webhooks: WebhookEndpoints) => T | Promise<T>

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
    ),
  )
}

const none = (id: string, product: string) =>
  new CommandFailure(exitCodes.negative, `The product ${product} has no webhook endpoint ${id}.`)

async function create(
  surroundings: Surroundings,
  url: string,
  { product, events, description, json }: Options & { events?: string; description?: string },
): Promise<void> {
  const types = events?.split(',').map((type) => type.trim())
  const created = await withWebhooks(
    surroundings,
    (webhooks) => webhooks.create(product, { url, events: types, description }),
    true,
  )
  if (!created.ok) throw new CommandFailure(exitCodes.failed, created.message)
  showSecret(surroundings, created.endpoint, json)
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
  const rows = endpoints.map(({ id, url, enabled, events, description }) => [
    id,
    url,
    enabled ? 'enabled' : 'disabled',
    events?.join(', ') ?? 'all',
    description ?? '',
  ])
  printTable(surroundings, ['ID', 'URL', 'STATE', 'EVENTS', 'DESCRIPTION'], rows, tones)
}

async function setEnabled(
  surroundings: Surroundings,
  id: string,
  { product, json }: Options,
  enabled: boolean,
): Promise<void> {
  const changed = await withWebhooks(surroundings, (webhooks) => webhooks.change(product, id, { enabled }))
  if (changed === undefined) throw none(id, product)
  if (!changed.ok) throw new CommandFailure(exitCodes.failed, changed.message)
  if (json) return printJson(surroundings, shownEndpoint(changed.endpoint))
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
  if (json) return printJson(surroundings, { delivery_id: deliveryId })
  surroundings.out(`${deliveryId}\n`)
  surroundings.err('The service sends it; ringwire webhooks deliveries says what became of it.\n')
}

async function deliveries(
  surroundings: Surroundings,
  id: string,
  { product, json, failed, limit }: Options & { failed?: boolean; limit: number },
): Promise<void> {
  const query = { status: failed ? ('failed' as const) : undefined, limit, before: undefined }
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
}
