/** `ringwire webhooks …`: where the webhooks of a product go [HOOK1]. */
import { type Command, InvalidArgumentError } from 'commander'
import { isDeliveryId, type WebhookEndpoint } from '../ports/webhooks.ts'
import {
  type EndpointInput,
  shownDelivery,
  shownEndpoint,
  splitEvents,
  type WebhookEndpoints,
} from '../webhooks/endpoints.ts'
import { webhooksOf } from './audited-webhooks.ts'
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
import { requireKnown, whyUnknown } from './known-products.ts'
import { addListenOptions } from './listen.ts'
import { product as productName, whole } from './options.ts'
import { findId } from './short-ids.ts'
import { shellWord, warnWithoutKey } from './signing.ts'
import { shownTime, withExact } from './times.ts'

const mostDeliveries = 1_000
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
  readonly exact?: boolean
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
      .requiredOption('--product <name>', 'the product whose events are sent', productName)
      .option('--json', 'print JSON instead of text')

  add('create <url>', 'Add an endpoint. Its secret is only shown once.')
    .option('--events <types>', `${eventsHelp} (default: all)`)
    .option('--description <text>', 'what it is for, at most 255 characters (default: none)')
    .action((url: string, options: Options & Changes) => create(surroundings, url, options))
  const listen = add(
    'listen',
    'Print the events of a product, and forward them to a server on this machine, until Ctrl-C.',
  )
  addListenOptions(listen, surroundings)
  add('list', 'List the endpoints of a product.').action((options: Options) => list(surroundings, options))
  add('set <id>', 'Change an endpoint; options that are not given change nothing.')
    .option('--url <url>', 'URL that gets the events (default: as it is)')
    .option('--events <types>', `${eventsHelp} (default: as it is)`)
    .option('--description <text>', 'what it is for, at most 255 characters; empty: nothing (default: as it is)')
    .action((id: string, options: Options & Changes) => set(surroundings, id, options))
  for (const enabled of [true, false]) {
    const [verb, what] = enabled
      ? ['enable', 'Send events to an endpoint again.']
      : ['disable', 'Send nothing more to an endpoint.']
    add(`${verb} <id>`, what).action((id: string, options: Options) => setEnabled(surroundings, id, options, enabled))
  }
  add(
    'rotate <id>',
    'Give an endpoint a new secret, which is only shown once. For 24 hours the old one signs, too.',
  ).action((id: string, options: Options) => rotate(surroundings, id, options))
  withYes(add('delete <id>', 'Remove an endpoint with all of its deliveries. In a terminal it asks first.')).action(
    (id: string, options: Options & ConfirmOptions) => remove(surroundings, id, options),
  )
  add('test <id>', 'Have the service send a webhook.test.').action((id: string, options: Options) =>
    test(surroundings, id, options),
  )
  withExact(add('deliveries <id>', 'List the deliveries, the newest first, with their answers.'))
    .option('--failed', 'only deliveries that failed for good')
    .option('--limit <count>', 'how many at most, 1 to 1000', whole(1, mostDeliveries), 50)
    .option('--cursor <id>', 'only deliveries older than this one (default: the newest ones)', cursor)
    .action((id: string, options: DeliveriesOptions) => deliveries(surroundings, id, options))
  add('retry <id> <delivery>', 'Have the service send a delivery that is over once more, under the same ID.').action(
    (id: string, deliveryId: string, options: Options) => retry(surroundings, id, deliveryId, options),
  )
}

/** Does something with the endpoint whose id was typed, in full or short; the command ends where there is none. */
function withEndpoint<T>(
  surroundings: Surroundings,
  product: string,
  typed: string,
  work: (webhooks: WebhookEndpoints, endpoint: WebhookEndpoint) => T | Promise<T>,
): Promise<T> {
  return withStore(surroundings, async (store, config) => {
    const webhooks = webhooksOf(surroundings, store, config)
    const endpoints = await webhooks.list(product)
    const ids = endpoints.map(({ id }) => id)
    const id = findId(typed, ids)
    const endpoint = endpoints.find((one) => one.id === id)
    if (endpoint !== undefined) return work(webhooks, endpoint)
    const there =
      ids.length === 0
        ? `It has none: ringwire webhooks create <url> --product ${shellWord(product)}`
        : `It has: ${endpoints.map(({ id, url }) => `${id} (${url})`).join(', ')}.`
    const hint = (await whyUnknown(surroundings, store, config, product)) ?? there
    throw none(`The product ${product} has no webhook endpoint ${typed}. ${hint}`)
  })
}

const none = (message: string) => new CommandFailure(exitCodes.negative, visible(message))
/** Between a look and a change somebody else has removed it. */
const gone = (id: string) => none(`The endpoint ${id} has just been removed.`)

async function create(
  surroundings: Surroundings,
  url: string,
  { product, json, ...given }: Options & Changes,
): Promise<void> {
  const input = { ...inputOf(given), url }
  const endpoint = await withNewStore(surroundings, async (store, config) => {
    // Before it is there: its secret is shown once, whatever fails after that.
    await warnWithoutKey(surroundings, store.products, config, product)
    const created = await webhooksOf(surroundings, store, config).create(product, input)
    if (!created.ok) throw new CommandFailure(exitCodes.failed, withHint(created.message))
    return created.endpoint
  })
  showSecret(surroundings, endpoint, json)
}

/** A hint for operators: a backend does not hear of the setting. */
function withHint(message: string): string {
  if (!/^url must (begin with https|lead to)/.test(message)) return message
  return `${message}\nRINGWIRE_WEBHOOK_ALLOW opens other addresses; this command reads it, too.`
}

/** As the service reads it: null is what a new endpoint has. */
function inputOf({ url, events, description }: Changes): EndpointInput {
  return {
    url,
    events: events === undefined ? undefined : splitEvents(events),
    description: description === '' ? null : description,
  }
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
  surroundings.err('The secret is not shown again. Keep it in the server that receives the webhooks.\n')
}

async function list(surroundings: Surroundings, { product, json }: Options): Promise<void> {
  const endpoints = await withStore(surroundings, async (store, config) => {
    const found = await webhooksOf(surroundings, store, config).list(product)
    if (found.length === 0) await requireKnown(surroundings, store, config, product)
    return found
  })
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

function change(
  surroundings: Surroundings,
  typed: string,
  product: string,
  input: EndpointInput,
): Promise<WebhookEndpoint> {
  return withEndpoint(surroundings, product, typed, async (webhooks, { id }) => {
    const changed = await webhooks.change(product, id, input)
    if (changed === undefined) throw gone(id)
    if (!changed.ok) throw new CommandFailure(exitCodes.failed, withHint(changed.message))
    return changed.endpoint
  })
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
  surroundings.err(`${endpoint.id} is ${enabled ? 'enabled' : 'disabled'}.\n`)
}

async function rotate(surroundings: Surroundings, typed: string, { product, json }: Options): Promise<void> {
  const endpoint = await withEndpoint(surroundings, product, typed, async (webhooks, { id }) => {
    const rotated = await webhooks.rotate(product, id)
    if (rotated === undefined) throw gone(id)
    return rotated
  })
  showSecret(surroundings, endpoint, json)
}

async function remove(surroundings: Surroundings, typed: string, options: Options & ConfirmOptions): Promise<void> {
  const { product, json } = options
  const id = await withEndpoint(surroundings, product, typed, async (webhooks, { id, url }) => {
    await confirm(surroundings, `This removes ${id} (${url}) with all of its deliveries.`, options)
    if (!(await webhooks.remove(product, id))) throw gone(id)
    return id
  })
  if (json) return printJson(surroundings, { id, deleted: true })
  surroundings.err(`${id} is removed.\n`)
}

async function test(surroundings: Surroundings, typed: string, { product, json }: Options): Promise<void> {
  const deliveryId = await withEndpoint(surroundings, product, typed, async (webhooks, { id }) => {
    const queued = await webhooks.test(product, id)
    if (queued === undefined) throw gone(id)
    return queued
  })
  showQueued(surroundings, deliveryId, json)
}

async function retry(
  surroundings: Surroundings,
  typedEndpoint: string,
  typedDelivery: string,
  { product, json }: Options,
): Promise<void> {
  const deliveryId = await withEndpoint(surroundings, product, typedEndpoint, async (webhooks, { id }) => {
    const deliveryId = await fullDeliveryId(webhooks, product, id, typedDelivery)
    if (await webhooks.retry(product, id, deliveryId)) return deliveryId
    const where = `ringwire webhooks deliveries ${id} --product ${shellWord(product)} lists them`
    throw none(`The endpoint ${id} has no delivery ${typedDelivery} that is over. ${where}.`)
  })
  showQueued(surroundings, deliveryId, json)
}

/** The id among the newest that begins with the typed characters; the typed text itself if none does. */
async function fullDeliveryId(webhooks: WebhookEndpoints, product: string, id: string, typed: string): Promise<string> {
  if (isDeliveryId(typed)) return typed
  const page = await webhooks.deliveries(product, id, { status: undefined, limit: mostDeliveries, before: undefined })
  return (
    findId(
      typed,
      (page?.records ?? []).map((record) => record.id),
    ) ?? typed
  )
}

function showQueued(surroundings: Surroundings, deliveryId: string, json: boolean | undefined): void {
  if (json) {
    printJson(surroundings, { delivery_id: deliveryId })
    return
  }
  surroundings.out(`${deliveryId}\n`)
  surroundings.err('The service sends it; ringwire webhooks deliveries shows what became of it.\n')
}

async function deliveries(
  surroundings: Surroundings,
  typed: string,
  { product, json, failed, limit, cursor: before, exact }: DeliveriesOptions,
): Promise<void> {
  const query = { status: failed ? ('failed' as const) : undefined, limit, before }
  const page = await withEndpoint(surroundings, product, typed, async (webhooks, { id }) => {
    const found = await webhooks.deliveries(product, id, query)
    if (found === undefined) throw gone(id)
    return found
  })
  const shown = page.records.map(shownDelivery)
  if (json) return printJson(surroundings, shown)
  if (shown.length === 0) return surroundings.err('There are no deliveries.\n')
  const rows = shown.map((one) => [
    one.id,
    one.type,
    one.status,
    String(one.attempts),
    shownTime(surroundings, one.created_at, exact),
    String(one.response_status ?? one.response ?? ''),
  ])
  printTable(surroundings, ['ID', 'TYPE', 'STATE', 'ATTEMPTS', 'CREATED', 'ANSWER'], rows, tones)
  if (page.next !== null) surroundings.err(`More with --cursor ${page.next}\n`)
}

/** A page goes on after the ID of the last delivery of the previous page. */
function cursor(text: string): string {
  if (isDeliveryId(text)) return text
  throw new InvalidArgumentError('It must be the ID of a delivery.')
}
