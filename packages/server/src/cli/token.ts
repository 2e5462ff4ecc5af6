/** `ringwire token …`: session tokens for a test, without an application backend. */
import { type Command, Option } from 'commander'
import { keyTag } from '../auth/key-tag.ts'
import { diagnoseToken } from '../auth/token-diagnosis.ts'
import { createTokens, type SessionClaims } from '../auth/tokens.ts'
import type { Config } from '../config/config.ts'
import type { ProductStore } from '../ports/product-store.ts'
import { participantHash } from '../ports/session-id.ts'
import { StoreError } from '../ports/store-error.ts'
import {
  CommandFailure,
  exitCodes,
  printFields,
  printJson,
  requireConfig,
  type StoreWork,
  type Surroundings,
  visibleLines,
  withStore,
} from './command.ts'
import { name, participantName, participantNames, whole } from './options.ts'
import { findWsUrl } from './service-url.ts'
import { placeOfSecrets, requireSecrets, requireSigner, type Signer } from './signing.ts'

/** The participant of a token. */
export interface ParticipantOptions {
  product: string
  user: string
  role: string
  name?: string
  peerRole: string[]
  contextType: string
  contextId: string
  device?: string
  ttl?: number
}

export function addTokenCommands(program: Command, surroundings: Surroundings): void {
  const token = program.command('token').description('Session tokens for a test, without an application backend.')
  const mintCommand = token
    .command('mint', { isDefault: true })
    .description('Print a session token and the URL to connect to. The word mint may be left out.')
  addParticipantOptions(mintCommand, true)
  mintCommand.option('--json', 'print JSON instead of text').action((options) => mint(surroundings, options))
  token
    .command('verify [token]')
    .description(
      'Say whether a token is valid, for whom and until when, or why not. Without a token, or with -, it reads standard input.',
    )
    .option('--json', 'print JSON, as always if standard output is not a terminal')
    .action((text: string | undefined, options) => verify(surroundings, text, options))
}

export function addParticipantOptions(command: Command, areRequired: boolean): void {
  for (const option of [
    new Option('--product <name>', 'product that has a key').argParser(name),
    new Option('--user <id>', 'user_id of the participant').argParser(participantName),
    new Option('--role <role>', 'role of the participant').argParser(participantName),
    new Option('--peer-role <role>', 'a role that the participant may call; several times for several').argParser(
      participantNames,
    ),
  ]) {
    command.addOption(option.makeOptionMandatory(areRequired))
  }
  command
    .option('--name <text>', 'display name (default: the user)', name)
    .option('--context-type <type>', 'context type', name, 'test')
    .option('--context-id <id>', 'context ID', name, 'test')
    .option('--device <id>', 'device_id (default: none)', name)
    .option('--ttl <seconds>', 'lifetime in seconds, 1 to 86400 (default: RINGWIRE_TOKEN_TTL_S)', whole(1, 86_400))
}

/** A token of the signer for these options. */
export function issueToken({ tokens }: Signer, options: ParticipantOptions): { token: string; expiresAt: number } {
  return tokens.issue({
    participant: { product: options.product, role: options.role, userId: options.user },
    displayName: options.name ?? options.user,
    contextType: options.contextType,
    contextId: options.contextId,
    allowedPeerRoles: options.peerRole,
    ...(options.device === undefined ? {} : { deviceId: options.device }),
    ...(options.ttl === undefined ? {} : { ttlS: options.ttl }),
  })
}

async function mint(surroundings: Surroundings, options: ParticipantOptions & { json?: boolean }): Promise<void> {
  const signer = await requireSigner(surroundings, options.product)
  const { kid, place } = signer
  const { token, expiresAt } = issueToken(signer, options)
  const url = findWsUrl(surroundings)
  const expires = new Date(expiresAt).toISOString()
  if (options.json) {
    return printJson(surroundings, { token, ws_url: url, expires_at: expires, signed_by: { kid, secrets: place } })
  }
  printFields(surroundings, [
    ['Token', token],
    ['URL', url ?? '(any port: see where the service listens)'],
    ['Expires', expires],
  ])
  surroundings.err(`Signed with the key ${kid} of ${place}. A service with other secrets refuses it.\n`)
  surroundings.err('To call with it: ringwire phone --token -, which asks for it.\n')
}

async function verify(surroundings: Surroundings, text = '-', { json }: { json?: boolean } = {}): Promise<void> {
  const token = text === '-' ? tokenIn(await surroundings.readInput()) : text
  if (token === '') throw new CommandFailure(exitCodes.usage, 'Give a token, or write it to standard input.')
  const { config } = requireConfig(surroundings)
  const secrets = await requireSecrets(config)
  const verified = createTokens({ secrets, ttlS: config.tokenTtlS, now: surroundings.now }).verify(token)
  if (!verified.ok) {
    throw refused(config, diagnoseToken(token, secrets, surroundings.now()))
  }
  const revocation = await askStore(surroundings, verified.claims)
  if (revocation?.reason !== undefined) throw refused(config, revocation.reason)
  // null: nobody could say.
  const claims = { ...describe(verified.claims), revoked: revocation === undefined ? null : false }
  if (json || surroundings.terminal === undefined) return printJson(surroundings, claims)
  surroundings.out(`${surroundings.terminal.paint('good', 'The token is valid.')}\n`)
  printFields(
    surroundings,
    Object.entries(claims).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : String(value ?? ''),
    ]),
  )
}

function refused(config: Config, reason: string): CommandFailure {
  const message = `${reason}\nChecked with the keys of ${placeOfSecrets(config)}.`
  return new CommandFailure(exitCodes.negative, visibleLines(message))
}

interface Revocation {
  /** Why the service refuses a token that is good otherwise; undefined: it does not. */
  readonly reason: string | undefined
}

/** What the store of the service says now. If it is out of reach, standard error says so, and nothing is known. */
async function askStore(surroundings: Surroundings, claims: SessionClaims): Promise<Revocation | undefined> {
  try {
    const look: StoreWork<string | undefined> = ({ products }) => findRevocation(products, claims, surroundings.now())
    return { reason: await withStore(surroundings, look) }
  } catch (error) {
    if (!(error instanceof CommandFailure || error instanceof StoreError)) throw error
    const message = `Not checked: whether it was revoked, or its product key is disabled. ${error.message}`
    surroundings.err(`${visibleLines(message)}\n`)
    return undefined
  }
}

/** It reads, and changes nothing: a service that watches revocations also removes old ones, by its own clock. */
async function findRevocation(
  products: ProductStore,
  { participant, issuedAt, key }: SessionClaims,
  now: number,
): Promise<string | undefined> {
  const hash = participantHash(participant)
  const taken = (await products.revocations(0)).find((revocation) => revocation.participant === hash)
  if (taken !== undefined && issuedAt < taken.before) {
    const { product, role, userId } = participant
    return `The token is authentic, but was revoked: tokens of user ${userId}, role ${role}, product ${product} that were issued before ${new Date(taken.before).toISOString()} do not count.`
  }
  const issuer = (await products.listKeys(now)).find(({ keyId }) => keyTag(keyId) === key)
  if (!issuer?.disabled) return undefined
  return `The token is authentic, but the product key that it was issued with, ${issuer.keyId}, is disabled.`
}

/** What was pasted: a token, an Authorization header, or what `ringwire token` printed. */
function tokenIn(input: string): string {
  const text = input.trim()
  const printed = /^Token +(\S+)$/m.exec(text)?.[1] ?? /^"token": "([^"]+)"/m.exec(text.replace(/^[{\s]+/, ''))?.[1]
  return printed ?? text.replace(/^(?:Authorization: *)?Bearer +/i, '')
}

function describe({ participant, ...claims }: SessionClaims) {
  return {
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
  }
}
