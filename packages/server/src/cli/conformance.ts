/** `ringwire conformance`: tests a service that claims to speak the interface. What it needs is loaded when it runs. */
import { writeFileSync } from 'node:fs'
import { type Command, InvalidArgumentError } from 'commander'
import type { Report } from '../conformance/report.ts'
import type { RuleId } from '../conformance/rules.ts'
import { CommandFailure, exitCodes, type Surroundings, visibleLines } from './command.ts'
import { whole } from './options.ts'
import { requireServiceUrl } from './service-url.ts'

const help = `
The key is one of the product that the kit may use: it makes participants of its own, which begin with kit-.

  $ ringwire conformance --service --url http://127.0.0.1:8080     with RINGWIRE_KEY_ID and RINGWIRE_KEY_SECRET set

Each rule of docs/protocol.md is passed, failed (with what went over the wire), or not seen. docs/conformance.md says more.
Exit codes: 0 nothing failed, 1 a rule failed or nothing could be tested, 2 wrong usage.
`

interface ConformanceOptions {
  readonly url?: string
  readonly keyId?: string
  readonly keySecret?: string
  readonly product?: string
  readonly service?: boolean
  readonly slow?: boolean
  readonly patience: number
  readonly callerRole: string
  readonly calleeRole: string
  readonly rule?: readonly string[]
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
    .description('Test whether a service keeps the rules of the protocol.')
    .option('--service', 'test the service at --url: the kit plays every client itself')
    .option('--url <url>', 'address of the service (default: RINGWIRE_URL, or where the service here listens)', httpUrl)
    .option('--key-id <id>', 'product key (default: RINGWIRE_KEY_ID)')
    .option(
      '--key-secret <secret>',
      'its secret, which other users of the machine can read here (default: RINGWIRE_KEY_SECRET)',
    )
    .option('--product <name>', 'product, where the key has several')
    .option('--caller-role <role>', 'role of participants who call', 'customer')
    .option('--callee-role <role>', 'role of participants who are called', 'agent')
    .option('--rule <id>', 'only what looks at this rule; can be given several times (default: all)', collect)
    .option('--slow', 'also what takes half a minute')
    .option('--patience <seconds>', 'how long something that has to come is waited for', whole(1, 600), 10)
    .option('--json <file>', 'write the report as JSON')
    .option('--junit <file>', 'write the report as JUnit XML')
    .addHelpText('after', help)
    .action(async (options: ConformanceOptions) => exit(await run(surroundings, options)))
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
  if (options.service !== true) throw new CommandFailure(exitCodes.usage, 'Say what is tested: --service.')
  if (!keyId || !keySecret) {
    const message = 'Set RINGWIRE_KEY_ID and RINGWIRE_KEY_SECRET, or give --key-id and --key-secret.'
    throw new CommandFailure(exitCodes.usage, message)
  }
  const { ruleTitles } = await import('../conformance/rules.ts')
  const unknown = options.rule?.find((rule) => !Object.hasOwn(ruleTitles, rule))
  if (unknown !== undefined) {
    const known = Object.keys(ruleTitles).join(', ')
    throw new CommandFailure(exitCodes.usage, `--rule ${unknown}: the kit looks at ${known}.`)
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
  const { testService } = await import('../conformance/service/run.ts')
  const { Untestable } = await import('../conformance/access.ts')
  try {
    return await testService({
      target,
      roles: { caller: options.callerRole, callee: options.calleeRole },
      patienceMs: options.patience * 1_000,
      isSlowToo: options.slow === true,
      only: (options.rule ?? []) as readonly RuleId[],
      onScenario: ({ name, outcome, duration_ms }) =>
        surroundings.err(visibleLines(`${name}: ${outcome}${outcome === 'played' ? ` (${duration_ms} ms)` : ''}\n`)),
    })
  } catch (error) {
    if (error instanceof Untestable) throw new CommandFailure(exitCodes.failed, error.message)
    throw error
  }
}

async function tell({ out }: Surroundings, { json, junit }: ConformanceOptions, report: Report): Promise<number> {
  const { junitOf, textOf } = await import('../conformance/report.ts')
  out(visibleLines(textOf(report)))
  if (json !== undefined) write(json, `${JSON.stringify(report, null, 2)}\n`)
  if (junit !== undefined) write(junit, junitOf(report))
  return report.summary.failed === 0 ? exitCodes.done : exitCodes.failed
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
