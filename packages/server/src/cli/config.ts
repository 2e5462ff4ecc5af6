/** `ringwire config …`: what the environment says. */
import { join } from 'node:path'
import type { Command } from 'commander'
import { hasJwtSecrets, jwtSecretsFile, loadJwtSecrets } from '../auth/jwt-secrets.ts'
import { type Config, describeConfig, loadConfig, settingRows } from '../config/config.ts'
import { oddTimes } from '../config/contradictions.ts'
import { whyUnusable } from '../config/data-dir.ts'
import { isReadableAgain, openToAll, whyUnreadable } from '../config/secret-files.ts'
import { tlsProblems } from '../config/tls-files.ts'
import { descriptorLimit, fewDescriptors } from '../observability/descriptors.ts'
import { demoKeyFile } from '../products/bootstrap-keys.ts'
import { type TriedService, tryPushServices } from '../push/check.ts'
import {
  CommandFailure,
  exitCodes,
  printJson,
  printTable,
  type Surroundings,
  storeFile,
  unusableDataDir,
} from './command.ts'

export function addConfigCommands(program: Command, surroundings: Surroundings): void {
  const config = program.command('config').description('The configuration, which is read from the environment.')
  config
    .command('check')
    .description(
      'Show every setting, and say what is wrong; check that the stores can be used, and that FCM and APNs take the credentials. Secrets are not shown.',
    )
    .option('--json', 'print JSON instead of text')
    .action((options) => check(surroundings, options))
  config
    .command('list')
    .description('List every setting with its default and its meaning.')
    .option('--json', 'print JSON instead of text')
    .action((options) => list(surroundings, options))
}

async function check(surroundings: Surroundings, options: { json?: boolean }): Promise<void> {
  const { env, now } = surroundings
  const loaded = loadConfig(env)
  const files = loaded.ok ? problemsOfFiles(loaded.config) : []
  const [push, stores] = await Promise.all([
    loaded.ok ? tryPushServices(loaded.config, now) : [],
    // If a file is missing, there is no store to check.
    loaded.ok && files.length === 0 ? surroundings.checkStores(loaded.config) : [],
  ])
  const problems = [
    ...(loaded.ok ? files : loaded.problems),
    ...stores.flatMap(({ store, problems }) => problems.map((problem) => `${store}: ${problem}`)),
    ...push.flatMap((tried) => (tried.problem === undefined ? [] : said(tried, tried.problem))),
  ]
  const settings = describeConfig(env)
  const warnings = [
    ...loaded.warnings,
    ...(loaded.ok ? [...fileWarnings(loaded.config, process.platform), ...oddTimes(loaded.config)] : []),
    ...descriptorWarnings(descriptorLimit()),
    ...stores.flatMap(({ store, warnings }) => warnings.map((warning) => `${store} ${warning}`)),
    ...push.flatMap((tried) => (tried.warning === undefined ? [] : said(tried, tried.warning))),
  ]
  if (options.json) {
    printJson(surroundings, { ok: problems.length === 0, problems, warnings, settings, stores, push })
  } else {
    const rows = settings.map(({ name, value, source }) => [name, value, source === 'set' ? 'set' : ''])
    printTable(surroundings, ['SETTING', 'VALUE', ''], rows, { set: 'good' })
    for (const warning of warnings) surroundings.err(`warning: ${warning}\n`)
    // A file of this machine needs no such word.
    const servers = stores.filter(({ store, problems }) => store !== 'SQLite' && problems.length === 0)
    for (const { store } of servers) surroundings.err(`${store}: it can be used.\n`)
    const taking = push.filter(({ problem, warning }) => problem === undefined && warning === undefined)
    for (const tried of taking) surroundings.err(`${said(tried, 'it takes the credentials.')}\n`)
  }
  if (problems.length > 0) throw new CommandFailure(exitCodes.failed, problems.join('\n'))
  if (!options.json) surroundings.err(`The configuration is good${countOf(warnings)}.\n`)
}

function countOf({ length }: readonly string[]): string {
  if (length === 0) return ''
  return `, with ${length} ${length === 1 ? 'warning' : 'warnings'}`
}

export function descriptorWarnings(limit: number | undefined): string[] {
  if (limit === undefined || limit >= fewDescriptors) return []
  return [`this process may open ${limit} files, and each socket is one: raise ulimit -n to ${fewDescriptors} or more`]
}

const platformNames = { fcm: 'FCM', apns: 'APNs' } as const

const said = ({ platform, url }: TriedService, text: string) => `${platformNames[platform]} at ${url}: ${text}`

function problemsOfFiles(config: Config): readonly string[] {
  return [...fileProblems(config), ...readMadeRing(config).problems]
}

type Ring = Pick<Config, 'jwtSecrets' | 'dataDir'>
type FileSettings = Ring & Pick<Config, 'tlsCert' | 'tlsKey' | 'databaseUrl' | 'demo'>
type SecretFiles = Ring & Pick<Config, 'tlsKey' | 'secretFiles'>

/** Files that are named have to be there before the service starts, and what it keeps has to have a place. */
export function fileProblems(config: FileSettings): string[] {
  const { databaseUrl } = config
  const files = [
    ['RINGWIRE_TLS_CERT', config.tlsCert],
    ['RINGWIRE_TLS_KEY', config.tlsKey],
    ['sslrootcert in DATABASE_URL', databaseUrl === null ? null : new URL(databaseUrl).searchParams.get('sslrootcert')],
  ] as const
  const unreadable = files.flatMap(([name, path]) => {
    const reason = path === null ? undefined : whyUnreadable(path)
    return reason === undefined ? [] : [`${name} names no readable file: ${path} (${reason})`]
  })
  const { tlsCert, tlsKey } = config
  const isPair = tlsCert !== null && tlsKey !== null && isReadableAgain(tlsCert) && isReadableAgain(tlsKey)
  return [...dataDirProblems(config), ...unreadable, ...(isPair ? tlsProblems(tlsCert, tlsKey) : [])]
}

/** With a database, and with secrets in the directory or in the environment, nothing is written to it. */
function dataDirProblems({ databaseUrl, jwtSecrets, demo, dataDir }: FileSettings): string[] {
  if (databaseUrl !== null && !demo && hasJwtSecrets({ jwtSecrets, dataDir })) return []
  const reason = whyUnusable(dataDir)
  return reason === undefined ? [] : [unusableDataDir(dataDir, reason)]
}

/** The keys of session tokens that are in the data directory; those of RINGWIRE_JWT_SECRETS are read with the settings. */
export function readMadeRing(config: Ring): {
  readonly files: readonly string[]
  readonly problems: readonly string[]
} {
  if (config.jwtSecrets !== null || !hasJwtSecrets(config)) return { files: [], problems: [] }
  try {
    return { files: loadJwtSecrets(config).flatMap(({ file }) => file ?? []), problems: [] }
  } catch (error) {
    return { files: [], problems: [(error as Error).message] }
  }
}

/** Anyone who reads one of these can issue tokens, read calls, or be taken for this service. */
export function fileWarnings(config: SecretFiles, platform: string): string[] {
  const own = [jwtSecretsFile, demoKeyFile, storeFile].map((name) => join(config.dataDir, name))
  const named = [
    ...config.secretFiles,
    ...readMadeRing(config).files,
    ...(config.tlsKey === null ? [] : [config.tlsKey]),
  ]
  return [...own, ...named].flatMap((path) => openToAll(path, platform) ?? [])
}

function list(surroundings: Surroundings, options: { json?: boolean }): void {
  const rows = settingRows()
  if (options.json) {
    printJson(surroundings, rows)
    return
  }
  for (const { name, type, unit, description, ...row } of rows) {
    const suffix = unit === '' ? '' : ` ${unit}`
    const heading = surroundings.terminal?.paint('strong', name) ?? name
    surroundings.out(`${heading}\n    ${description}\n    ${type}; default: ${row.default}${suffix}\n`)
  }
}
