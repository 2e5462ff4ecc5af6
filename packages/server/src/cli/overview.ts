/** `ringwire overview` and `ringwire nodes`: what the operator's page shows of now [ADM2]. */
import type { Command } from 'commander'
import {
  CommandFailure,
  exitCodes,
  printFields,
  printJson,
  printTable,
  requireConfig,
  type Surroundings,
} from './command.ts'

interface Options {
  url?: string
  json?: boolean
}

interface Trouble {
  readonly since: string
  readonly what: string
  readonly remedy: string
}

/** What is read of the answer. */
interface Now {
  readonly health: Readonly<Record<string, string | boolean>>
  readonly nodes: readonly { readonly node: string; readonly sockets: number | null; readonly is_here: boolean }[]
  readonly troubles: readonly Trouble[]
  readonly connections: number
  readonly calls: Readonly<Record<'ringing' | 'accepted' | 'connected', readonly number[]>>
  readonly recent: Readonly<Record<'limited' | 'failed', Readonly<Record<string, number>>>>
}

const limitMs = 10_000

export function addOverviewCommands(program: Command, surroundings: Surroundings): void {
  const add = (word: string, description: string) =>
    program
      .command(word)
      .description(description)
      .option(
        '--url <url>',
        'address of the listener for operators (default: RINGWIRE_ADMIN_HOST and RINGWIRE_ADMIN_PORT); its token is RINGWIRE_ADMIN_TOKEN',
      )
      .option('--json', 'print the JSON of the REST answer instead of text')
  add(
    'overview',
    'The state of the service: what is wrong, stores, sockets, live calls, and failures of the last ten minutes.',
  ).action((options) => overview(surroundings, options))
  add('nodes', 'The nodes that serve, and how many sockets each has.').action((options) => nodes(surroundings, options))
}

async function overview(surroundings: Surroundings, options: Options): Promise<void> {
  const [now, failing] = await Promise.all([
    ask<Now>(surroundings, options, 'now'),
    // Without the database nobody knows which endpoints fail; that it is away is among the other troubles.
    ask<{ data: readonly Trouble[] }>(surroundings, options, 'failing-webhooks').catch(() => ({ data: [] })),
  ])
  const troubles = [...now.troubles, ...failing.data]
  if (options.json) return printJson(surroundings, { ...now, troubles })
  const { health, connections, calls, recent } = now
  const here = now.nodes.filter((node) => node.is_here).map(({ node }) => node)
  const sum = (counts: readonly number[]) => String(counts.reduce((all, one) => all + one, 0))
  const said = (counts: Readonly<Record<string, number>>) =>
    Object.entries(counts)
      .map(([name, count]) => `${name}: ${count}`)
      .join(', ') || 'none'
  printFields(surroundings, [
    ...troubles.map(({ since, what, remedy }) => ['Wrong', `${what} Since ${since}. ${remedy}`] as const),
    ['Ready', health.service_ready ? 'yes' : 'no'],
    ['Database', String(health.database)],
    ['Redis', String(health.redis)],
    ['Nodes', String(now.nodes.length)],
    ['Figures of', here.join(', ')],
    ['Sockets', String(connections)],
    ...(['ringing', 'accepted', 'connected'] as const).map(
      (status) => [`Calls ${status}`, sum(calls[status])] as const,
    ),
    ['Limits hit', said(recent.limited)],
    ['Errors', said(recent.failed)],
  ])
}

async function nodes(surroundings: Surroundings, options: Options): Promise<void> {
  const now = await ask<Now>(surroundings, options, 'now')
  if (options.json) return printJson(surroundings, { success: true, nodes: now.nodes })
  const rows = now.nodes.map(({ node, sockets, is_here: isHere }) => [
    node,
    sockets === null ? 'takes nobody' : String(sockets),
    isHere ? 'asked' : '',
  ])
  printTable(surroundings, ['NODE', 'SOCKETS', ''], rows, { asked: 'good' })
}

async function ask<T extends object>(surroundings: Surroundings, options: Options, path: string): Promise<T> {
  const { config } = requireConfig(surroundings)
  const [token] = config.adminTokens ?? []
  if (token === undefined)
    throw new CommandFailure(exitCodes.usage, 'Set RINGWIRE_ADMIN_TOKEN to the token of the listener for operators.')
  const base = options.url ?? ownUrl(config)
  if (base === undefined || !URL.canParse(base))
    throw new CommandFailure(
      exitCodes.usage,
      'Give --url as http://127.0.0.1:9464, or set RINGWIRE_ADMIN_PORT to the port of the listener for operators.',
    )
  const url = new URL(`/admin/api/${path}`, base)
  const answer = await fetch(url, {
    headers: { Authorization: `Bearer ${token}` },
    redirect: 'manual',
    signal: AbortSignal.timeout(limitMs),
  }).catch(() => {
    throw new CommandFailure(exitCodes.failed, `No listener for operators answers at ${url.origin}.`)
  })
  const body = (await answer.json().catch(() => ({}))) as T & {
    success?: boolean
    error?: { code: string; message: string }
  }
  if (answer.ok && body.success === true) return body
  const said = body.error === undefined ? `answered ${answer.status}` : `${body.error.code}: ${body.error.message}`
  throw new CommandFailure(exitCodes.failed, `${url.origin} ${said}`)
}

function ownUrl({ adminHost, adminPort }: { adminHost: string; adminPort: number | null }): string | undefined {
  if (adminPort === null || adminPort === 0) return undefined
  return `http://${adminHost.includes(':') ? `[${adminHost}]` : adminHost}:${adminPort}`
}
