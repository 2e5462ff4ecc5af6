/** `ringwire webhooks listen`: the events of a product, forwarded to a server on this machine. */
import { randomBytes } from 'node:crypto'
import type { Command } from 'commander'
import { InvalidArgumentError } from 'commander'
import type { Config } from '../config/config.ts'
import { newWebhookSecret } from '../outgoing/signature.ts'
import type { WebhookEndpoint } from '../ports/webhooks.ts'
import { readEvents } from '../webhooks/endpoints.ts'
import { newListenerId, renewMs, runningAt } from '../webhooks/listeners.ts'
import {
  CommandFailure,
  exitCodes,
  type OpenStore,
  type Surroundings,
  type Tone,
  visible,
  withStore,
} from './command.ts'
import { requireKnown } from './known-products.ts'
import { placeOfKeys, shellWord } from './signing.ts'

interface ListenOptions {
  readonly product: string
  readonly forwardTo?: URL
  readonly events?: string
  readonly secret?: string
  readonly json?: boolean
}

/** The service gives up after 10 s, and would send the event again. In ms. */
const forwardMs = 8_000
/** How often it is looked whether the endpoint is still there, in ms. */
const lookMs = 2_000
/** A service that runs has looked by then, in ms. */
const readyMs = 6_000

export function addListenOptions(command: Command, surroundings: Surroundings): void {
  command
    .option(
      '--forward-to <url>',
      'URL that gets the events, as http://127.0.0.1:3000/webhooks or 3000/webhooks (default: they are only printed)',
      forwardUrl,
    )
    .option('--events <types>', 'types of events, with commas between them, or all: every type of calls (default: all)')
    .option('--secret <secret>', 'the whsec_ secret that signs, to keep the same one (default: a new one)', secretOf)
    .action((options: ListenOptions) => listen(surroundings, options))
}

/** As it is typed: a port with a path, a host with a port, or a URL. */
function forwardUrl(text: string): URL {
  const full = /^\d+(\/|$)/.test(text)
    ? `http://127.0.0.1:${text}`
    : /^https?:\/\//.test(text)
      ? text
      : `http://${text}`
  if (URL.canParse(full)) return new URL(full)
  throw new InvalidArgumentError('It must be a URL as http://127.0.0.1:3000/webhooks, or a port with a path.')
}

function secretOf(text: string): string {
  const bytes = /^whsec_([A-Za-z0-9+/]+=*)$/.exec(text)?.[1]
  const { length } = Buffer.from(bytes ?? '', 'base64')
  if (length >= 24 && length <= 64) return text
  throw new InvalidArgumentError('It must be whsec_ and 24 to 64 bytes in base64.')
}

async function listen(surroundings: Surroundings, options: ListenOptions): Promise<void> {
  const { product, secret = newWebhookSecret() } = options
  const events = readEvents(options.events)
  if (!events.ok) throw new CommandFailure(exitCodes.usage, `--events: ${events.message}`)
  await withStore(surroundings, async (store, config) => {
    await requireKnown(surroundings, store, config, product)
    const id = newListenerId()
    const receiver = openReceiver(surroundings, id, options)
    const endpoint: WebhookEndpoint = {
      ...{ id, product, secret, url: receiver.url, events: events.types, enabled: true },
      ...{ description: runningAt(surroundings.now()), oldSecret: null, oldSecretUntil: null },
      createdAt: surroundings.now(),
    }
    const stopped = surroundings.stopped()
    try {
      await store.webhooks.addEndpoint(endpoint)
      surroundings.out(options.json ? `${JSON.stringify({ secret })}\n` : `The signing secret is ${secret}\n`)
      void sayWhenReady(surroundings, receiver.asked, config, options)
      await keep(surroundings, store, endpoint, stopped)
    } finally {
      await store.webhooks.removeEndpoint(product, id)
      await receiver.close()
    }
  })
}

/** Until it is stopped. A service that found this command gone, as after a sleep of the machine, removed the endpoint. */
async function keep(
  { now }: Surroundings,
  { webhooks }: OpenStore,
  endpoint: WebhookEndpoint,
  stopped: Promise<unknown>,
): Promise<void> {
  let isStopped = false
  let renewedAt = performance.now()
  void stopped.then(() => {
    isStopped = true
  })
  while (!isStopped) {
    const there = await webhooks.endpointsOf(endpoint.product)
    if (!there.some(({ id }) => id === endpoint.id)) await webhooks.addEndpoint(endpoint)
    if (performance.now() - renewedAt >= renewMs) {
      await webhooks.changeEndpoint(endpoint.product, endpoint.id, { description: runningAt(now()) })
      renewedAt = performance.now()
    }
    await Promise.race([stopped, Bun.sleep(lookMs)])
  }
}

async function sayWhenReady(
  { err }: Surroundings,
  asked: Promise<void>,
  config: Config,
  { product, forwardTo }: ListenOptions,
): Promise<void> {
  const place = placeOfKeys(config)
  err(visible(`Waiting for the service that runs with ${place} on this machine: it looks every 2 seconds.`))
  err('\n')
  const late = Bun.sleep(readyMs).then(() => 'late' as const)
  if ((await Promise.race([asked, late])) === 'late') err('No service has looked yet: is it running?\n')
  await asked
  const where = forwardTo === undefined ? 'are printed' : `go to ${forwardTo.href}`
  err(visible(`Ready. Events of ${product} ${where}; Ctrl-C ends.`))
  err('\n')
}

/** A server that only this machine reaches, below a path that nobody guesses. */
function openReceiver(surroundings: Surroundings, id: string, options: ListenOptions) {
  const path = `/${randomBytes(16).toString('hex')}`
  const { promise: asked, resolve: isAsked } = Promise.withResolvers<void>()
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    development: false,
    async fetch(request) {
      if (new URL(request.url).pathname !== path) return new Response(null, { status: 404 })
      if (request.method === 'GET') {
        isAsked()
        return new Response(id)
      }
      await forward(surroundings, request, id, options)
      // The output shows the answer of the other server; the service has nothing to repeat.
      return new Response(null, { status: 204 })
    },
  })
  return { url: `http://127.0.0.1:${server.port}${path}`, asked, close: () => server.stop(true) }
}

/** Its body and headers as the service signed them. */
async function forward(
  surroundings: Surroundings,
  request: Request,
  endpointId: string,
  options: ListenOptions,
): Promise<void> {
  const body = await request.text()
  const begin = performance.now()
  const answer = options.forwardTo === undefined ? undefined : await ask(options.forwardTo, request, body)
  const duration_ms = Math.round(performance.now() - begin)
  const { type = '', data = {} } = JSON.parse(body) as { type?: string; data?: { call_uuid?: string } }
  const webhook_id = request.headers.get('webhook-id') ?? ''
  const at = new Date(surroundings.now()).toISOString()
  const about = { at, type, call_uuid: data.call_uuid, webhook_id }
  if (options.json) {
    const shown = answer === undefined ? about : { ...about, ...answer, duration_ms }
    surroundings.out(`${visible(JSON.stringify(shown))}\n`)
    return
  }
  const result = answer === undefined ? '' : `  → ${answer.status ?? answer.error} (${duration_ms} ms)`
  const isGood = answer === undefined || (answer.status !== undefined && answer.status < 300)
  const paint = (tone: Tone, text: string) => surroundings.terminal?.paint(tone, visible(text)) ?? visible(text)
  const what = [at, paint('strong', type), paint('dim', data.call_uuid ?? webhook_id)].join('  ')
  surroundings.out(`${what}${paint(isGood ? 'good' : 'bad', result)}\n`)
  if (isGood) return
  // The service counts it as delivered, so its list of failed deliveries does not have it.
  const again = `ringwire webhooks retry ${endpointId} ${webhook_id} --product ${shellWord(options.product)}`
  surroundings.err(visible(`To send it again: ${again}`))
  surroundings.err('\n')
}

const passedOn = ['content-type', 'user-agent', 'webhook-id', 'webhook-timestamp', 'webhook-signature']

async function ask(url: URL, { headers }: Request, body: string): Promise<{ status?: number; error?: string }> {
  const own = passedOn.map((name): [string, string] => [name, headers.get(name) ?? ''])
  try {
    const signal = AbortSignal.timeout(forwardMs)
    const response = await fetch(url, { method: 'POST', headers: own, body, redirect: 'manual', signal })
    await response.body?.cancel()
    return { status: response.status }
  } catch (error) {
    const { name, code, message } = error as Error & { code?: string }
    return { error: name === 'TimeoutError' ? `no answer within ${forwardMs / 1_000} s` : (code ?? message) }
  }
}
