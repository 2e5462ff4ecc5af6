/** `ringwire token …`: session tokens for a test, without an application backend. */
import type { Command } from 'commander'
import { loadJwtSecrets } from '../auth/jwt-secrets.ts'
import { createTokens, type Tokens } from '../auth/tokens.ts'
import type { Config } from '../config.ts'
import { createWsUrl } from '../ws-url.ts'
import { CommandFailure, exitCodes, inDataDir, printJson, requireConfig, type Surroundings } from './command.ts'
import { name, names, whole } from './options.ts'

interface MintOptions {
  product: string
  user: string
  role: string
  name?: string
  peerRole: string[]
  contextType: string
  contextId: string
  device?: string
  ttl?: number
  json?: boolean
}

export function addTokenCommands(program: Command, surroundings: Surroundings): void {
  const token = program.command('token').description('Session tokens for a test, without an application backend.')
  token
    .command('mint', { isDefault: true })
    .description('Print a session token and the URL to connect to. The word mint may be left out.')
    .requiredOption('--product <name>', 'product namespace', name)
    .requiredOption('--user <id>', 'user_id of the participant', name)
    .requiredOption('--role <role>', 'role of the participant', name)
    .requiredOption('--peer-role <role>', 'a role that the participant may call; several times for several', names)
    .option('--name <text>', 'display name (default: the user)', name)
    .option('--context-type <type>', 'context type', name, 'test')
    .option('--context-id <id>', 'context ID', name, 'test')
    .option('--device <id>', 'device_id', name)
    .option('--ttl <seconds>', 'lifetime (default: RINGWIRE_TOKEN_TTL_S)', whole(1, 86_400))
    .option('--json', 'print JSON')
    .action((options) => mint(surroundings, options))
  token
    .command('verify <token>')
    .description('Say whether a token is valid, and print its claims; - reads it from standard input.')
    .action((text: string) => verify(surroundings, text))
}

async function openTokens(surroundings: Surroundings): Promise<{ config: Config; tokens: Tokens }> {
  const { config } = requireConfig(surroundings)
  const secrets = await inDataDir(config, () => loadJwtSecrets(config))
  return { config, tokens: createTokens({ secrets, ttlS: config.tokenTtlS, now: surroundings.now }) }
}

async function mint(surroundings: Surroundings, options: MintOptions): Promise<void> {
  const { config, tokens } = await openTokens(surroundings)
  const { token, expiresAt } = tokens.issue({
    participant: { product: options.product, role: options.role, userId: options.user },
    displayName: options.name ?? options.user,
    contextType: options.contextType,
    contextId: options.contextId,
    allowedPeerRoles: options.peerRole,
    ...(options.device === undefined ? {} : { deviceId: options.device }),
    ...(options.ttl === undefined ? {} : { ttlS: options.ttl }),
  })
  const url = wsUrlOf(config)
  const expires = new Date(expiresAt).toISOString()
  if (options.json) return printJson(surroundings, { token, ws_url: url, expires_at: expires })
  surroundings.out(
    `Token    ${token}\nURL      ${url ?? '(any port: see where the service listens)'}\nExpires  ${expires}\n`,
  )
}

/** null where only the running service knows its port. */
function wsUrlOf(config: Config): string | null {
  if (config.publicUrl === null && config.port === 0) return null
  const host = config.host.includes(':') ? `[${config.host}]` : config.host
  return createWsUrl(config)(`${config.tlsCert === null ? 'http' : 'https'}://${host}:${config.port}/`)
}

async function verify(surroundings: Surroundings, text: string): Promise<void> {
  const { tokens } = await openTokens(surroundings)
  const token = text === '-' ? (await surroundings.readInput()).trim() : text
  const verified = tokens.verify(token)
  if (!verified.ok) {
    const message = verified.expired ? 'The token is authentic, but expired.' : 'The token is not valid here.'
    throw new CommandFailure(exitCodes.negative, message)
  }
  const { participant, ...claims } = verified.claims
  printJson(surroundings, {
    product: participant.product,
    user_id: participant.userId,
    role: participant.role,
    display_name: claims.displayName,
    context_type: claims.contextType,
    context_id: claims.contextId,
    allowed_peer_roles: claims.allowedPeerRoles,
    allowed_actions: claims.allowedActions,
    device_id: claims.deviceId,
    app_version: claims.appVersion,
    expires_at: new Date(claims.expiresAt).toISOString(),
    token_id: claims.tokenId,
  })
}
