/**
 * `ringwire conformance`: tests a client, or a service that claims to speak the interface. Its parts are loaded when it
 * runs.
 */
import { writeFileSync } from 'node:fs'
import { type Command, InvalidArgumentError } from 'commander'
import type { Line } from '../conformance/client/run.ts'
import type { PlayedScenario, Report } from '../conformance/report.ts'
import type { RuleId } from '../conformance/rules.ts'
import type { ServiceRun } from '../conformance/service/run.ts'
import { CommandFailure, exitCodes, type Surroundings, visibleLines } from './command.ts'
import { whole } from './options.ts'
import { requireServiceUrl } from './service-url.ts'

const help = `
The key is one of the product that the kit may use: it makes participants of its own, which begin with kit-.

  $ ringwire conformance --service --url http://127.0.0.1:8080     with RINGWIRE_KEY_ID and RINGWIRE_KEY_SECRET set
  $ ringwire conformance --listen 127.0.0.1:9090                   a client that connects there, and you who operate it
  $ ringwire conformance --json-lines                              a client that reads its instructions from here

Each rule of docs/protocol.md is passed, failed (with what went over the wire), or not seen. docs/conformance.md says more.
Exit codes: 0 nothing failed, 1 a rule failed or none was seen, 2 wrong usage.
`

interface ConformanceOptions {
  readonly url?: string
  readonly keyId?: string
  readonly keySecret?: string
  readonly product?: string
  readonly service?: boolean
  readonly listen: { readonly host: string; readonly port: number }
  readonly jsonLines?: boolean
  readonly user?: string
  readonly act: number
  readonly slow?: boolean
  readonly patience: number
  readonly callerRole: string
  readonly calleeRole: string
  readonly rule?: readonly string[]
  readonly scenario: string
  readonly json?: string
  readonly junit?: string
}

export function addConformanceCommand(
  program: Command,
  surroundings: Surroundings,
  exit: (code: number) => void,
): void {
  program
    .command('conformance')
    .description('Test whether a client, or a service, keeps the rules of the protocol.')
    .option('--service', 'test the service at --url: the kit plays every client itself (default: a client is tested)')
    .option('--listen <address>', 'address at which the client under test connects, as 127.0.0.1:9090', address, {
      host: '127.0.0.1',
      port: 0,
    })
    .option('--user <id>', 'user_id of the client under test, if it asks for its tokens itself (default: a new one)')
    .option(
      '--json-lines',
      'write the instructions for the client as JSON lines on standard output, instead of sentences',
    )
    .option('--act <seconds>', 'how long the client has for each instruction', whole(1, 3_600), 60)
    .option('--url <url>', 'address of the service (default: RINGWIRE_URL, or the service on this machine)', httpUrl)
    .option('--key-id <id>', 'product key (default: RINGWIRE_KEY_ID)')
    .option(
      '--key-secret <secret>',
      'its secret, which other users of the machine can read here (default: RINGWIRE_KEY_SECRET)',
    )
    .option('--product <name>', 'product, if the key has several')
    .option('--caller-role <role>', 'role of participants who call', 'customer')
    .option('--callee-role <role>', 'role of participants who are called', 'agent')
    .option('--rule <id>', 'only scenarios that check this rule; can be given several times (default: all)', collect)
    .option('--scenario <words>', 'only scenarios whose name has this text (default: all)', '')
    .option('--slow', 'also scenarios that take half a minute')
    .option('--patience <seconds>', 'how long the kit waits for a message that has to come', whole(1, 600), 10)
    .option('--json <file>', 'write the report as JSON')
    .option('--junit <file>', 'write the report as JUnit XML')
    .addHelpText('after', help)
    .action(async (options: ConformanceOptions) => exit(await run(surroundings, options)))
}

function address(text: string): { host: string; port: number } {
  const [, host = '127.0.0.1', port = ''] = /^(?:(.+):)?(\d{1,5})$/.exec(text) ?? []
  if (port !== '' && Number(port) <= 65_535) return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
  throw new InvalidArgumentError('It has to be a port, or like 127.0.0.1:9090.')
}

const collect = (text: string, before: readonly string[] | undefined) => [...(before ?? []), text]

function httpUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.search === '') return text
  throw new InvalidArgumentError('It has to be like http://127.0.0.1:8080.')
}

async function run(surroundings: Surroundings, options: ConformanceOptions): Promise<number> {
  const { env } = surroundings
  const keyId = options.keyId ?? env.RINGWIRE_KEY_ID
  const keySecret = options.keySecret ?? env.RINGWIRE_KEY_SECRET
  if (!keyId || !keySecret) {
    const message = 'Set RINGWIRE_KEY_ID and RINGWIRE_KEY_SECRET, or give --key-id and --key-secret.'
    throw new CommandFailure(exitCodes.usage, message)
  }
  const { ruleTitles } = await import('../conformance/rules.ts')
  const unknown = options.rule?.find((rule) => !Object.hasOwn(ruleTitles, rule))
  if (unknown !== undefined) {
    const known = Object.keys(ruleTitles).join(', ')
    throw new CommandFailure(exitCodes.usage, `--rule ${unknown}: the kit checks ${known}.`)
  }
  const target = { url: options.url ?? requireServiceUrl(surroundings), keyId, keySecret, product: options.product }
  const report = await tested(surroundings, options, target)
  return tell(surroundings, options, report)
}

type Target = {
  readonly url: string
  readonly keyId: string
  readonly keySecret: string
  readonly product: string | undefined
}

async function tested(surroundings: Surroundings, options: ConformanceOptions, target: Target): Promise<Report> {
  const { Untestable } = await import('../conformance/access.ts')
  const run = {
    target,
    roles: { caller: options.callerRole, callee: options.calleeRole },
    patienceMs: options.patience * 1_000,
    isSlowToo: options.slow === true,
    only: (options.rule ?? []) as readonly RuleId[],
    named: options.scenario,
  }
  try {
    if (options.service !== true) return await testedClient(surroundings, options, run)
    const { testService } = await import('../conformance/service/run.ts')
    const onScenario = ({ name, outcome, duration_ms }: PlayedScenario) =>
      surroundings.err(visibleLines(`${name}: ${outcome}${outcome === 'played' ? ` (${duration_ms} ms)` : ''}\n`))
    return await testService({ ...run, onScenario })
  } catch (error) {
    if (error instanceof Untestable) throw new CommandFailure(exitCodes.failed, error.message)
    throw error
  }
}

type OfBoth = Omit<ServiceRun, 'onScenario'>

async function testedClient(surroundings: Surroundings, options: ConformanceOptions, run: OfBoth): Promise<Report> {
  const { testClient } = await import('../conformance/client/run.ts')
  const { listen, user: userId, jsonLines, act } = options
  const say = (line: Line) =>
    surroundings.out(jsonLines ? `${visibleLines(JSON.stringify(line))}\n` : visibleLines(sentenceOf(line)))
  return testClient({ ...run, listen, userId, actMs: act * 1_000, say })
}

function sentenceOf(line: Line): string {
  switch (line.type) {
    case 'session': {
      const { client, peer, url, session_url, session } = line
      const { token = '', ws_url = '' } = session as { token?: string; ws_url?: string }
      return [
        `The client is ${client.user_id} (role ${client.role}). Its peer is ${peer.user_id} (role ${peer.role}).`,
        `It connects to ${ws_url}, with this token: ${token}`,
        `Whenever it needs another token, it gets one from ${session_url}, or from ${url}/v1/call/session-token.`,
        '',
      ].join('\n')
    }
    case 'scenario':
      return `\n${line.name}\n`
    case 'do':
      return `  → ${line.text}\n`
    case 'over':
      return line.outcome === 'played' ? '' : `  ${line.outcome}: ${line.why ?? ''}\n`
  }
}

async function tell(
  { out }: Surroundings,
  { json, junit, jsonLines, service }: ConformanceOptions,
  report: Report,
): Promise<number> {
  const { junitOf, textOf } = await import('../conformance/report.ts')
  const isLine = jsonLines === true && service !== true
  out(isLine ? `${visibleLines(JSON.stringify({ type: 'report', report }))}\n` : visibleLines(textOf(report)))
  if (json !== undefined) write(json, `${JSON.stringify(report, null, 2)}\n`)
  if (junit !== undefined) write(junit, junitOf(report))
  // If nothing was seen, nothing is shown: a client that never connected is not a success.
  const { passed, failed } = report.summary
  return failed === 0 && passed > 0 ? exitCodes.done : exitCodes.failed
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text)
  } catch (error) {
    throw new CommandFailure(
      exitCodes.failed,
      `${file} cannot be written: ${error instanceof Error ? error.message : error}`,
    )
  }
}
