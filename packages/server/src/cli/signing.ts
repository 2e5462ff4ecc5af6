/**
 * Session tokens signed on this machine, without an application backend.
 *
 *   requireSigner(surroundings, product) → what signs tokens of this product, or the end with a line that says what to do
 *   requireSecrets(config)               → the keys that are here already; none are made
 */
import { resolve } from 'node:path'
import { hasJwtSecrets, jwtSecretsFile, loadJwtSecrets } from '../auth/jwt-secrets.ts'
import { createTokens, type Tokens } from '../auth/tokens.ts'
import type { Config, JwtSecret } from '../config/config.ts'
import type { ProductKey, ProductStore } from '../ports/product-store.ts'
import {
  CommandFailure,
  exitCodes,
  inDataDir,
  requireConfig,
  requireOpen,
  requireStore,
  type Surroundings,
  visible,
  withStore,
} from './command.ts'

export interface Signer {
  readonly config: Config
  readonly tokens: Tokens
  /** The key that signs, and where it is kept. */
  readonly kid: string
  readonly place: string
}

/**
 * A token for a product that this service has no key for is a slip: of the product's name, or of the directory. So nothing
 * is signed then, and no directory or key is made that a service would find later.
 */
export async function requireSigner(surroundings: Surroundings, product: string): Promise<Signer> {
  const { config } = requireConfig(surroundings)
  const isKnownHere = await requireProduct(surroundings, config, product)
  // The first key of a directory is made where its own database knows the product, as the service would make it.
  const secrets = isKnownHere ? await inDataDir(config, () => loadJwtSecrets(config)) : await requireSecrets(config)
  const tokens = createTokens({ secrets, ttlS: config.tokenTtlS, now: surroundings.now })
  return { config, tokens, kid: secrets[0]?.kid ?? '', place: placeOfSecrets(config) }
}

export async function requireSecrets(config: Config): Promise<readonly JwtSecret[]> {
  if (!hasJwtSecrets(config)) {
    requireOpen(config)
    const message = `There is no ${placeOfSecrets(config)}: no token was issued with this data directory. Set RINGWIRE_DATA_DIR to the directory of the service, or RINGWIRE_JWT_SECRETS to its secrets.`
    throw new CommandFailure(exitCodes.negative, message)
  }
  return inDataDir(config, () => loadJwtSecrets(config))
}

export function placeOfSecrets({ jwtSecrets, dataDir }: Pick<Config, 'jwtSecrets' | 'dataDir'>): string {
  return jwtSecrets === null ? resolve(dataDir, jwtSecretsFile) : 'RINGWIRE_JWT_SECRETS'
}

/** Whether the product has its key in this data directory; the command ends where it has none at all. */
async function requireProduct(surroundings: Surroundings, config: Config, product: string): Promise<boolean> {
  if (isBootstrapped(config, product)) return false
  requireStore(config, ', so no token is signed', shellWord(product))
  await withStore(surroundings, ({ products }) => requireKeyOf(products, config, product, surroundings.now()))
  return config.databaseUrl === null
}

async function requireKeyOf(products: ProductStore, config: Config, product: string, now: number): Promise<void> {
  const keys = await products.listKeys(now)
  const own = keys.filter((key) => key.products.includes(product))
  if (own.some(({ disabled }) => !disabled)) return
  const place = placeOfKeys(config)
  const [disabled] = own
  if (disabled !== undefined) {
    const message = `The product ${product} has no enabled key in ${place}, so no token is signed. To enable one: ringwire keys enable ${shellWord(disabled.keyId)}`
    throw new CommandFailure(exitCodes.failed, visible(message))
  }
  const message = `The product ${product} has no key in ${place}, so no token is signed. ${knownProducts(keys)} To make one: ringwire keys create --product ${shellWord(product)}`
  throw new CommandFailure(exitCodes.failed, visible(message))
}

/** A product may be set up before its key is made; most often its name is mistyped. */
export async function warnWithoutKey(
  { err, now }: Surroundings,
  products: ProductStore,
  config: Config,
  product: string,
): Promise<void> {
  if (isBootstrapped(config, product)) return
  const keys = await products.listKeys(now())
  if (keys.some((key) => key.products.includes(product))) return
  const message = `the product ${product} has no key in ${placeOfKeys(config)}. ${knownProducts(keys)}`
  err(`warning: ${visible(message)}\n`)
}

export function isBootstrapped({ bootstrapKeys }: Config, product: string): boolean {
  return bootstrapKeys.some(({ products }) => products.includes(product))
}

export function placeOfKeys({ databaseUrl, dataDir }: Config): string {
  return databaseUrl === null ? resolve(dataDir) : 'the database (DATABASE_URL)'
}

export function knownProducts(keys: readonly ProductKey[]): string {
  const known = [...new Set(keys.flatMap((key) => key.products))].sort()
  return known.length === 0 ? 'There is no key at all.' : `Products with a key: ${known.join(', ')}.`
}

/** As a shell reads it as one word. */
export function shellWord(text: string): string {
  return /^[\w./:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}
