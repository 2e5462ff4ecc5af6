/**
 * Product keys that exist from the start.
 *
 *   applyBootstrapKeys(products, config, now, logger): the keys of RINGWIRE_BOOTSTRAP_KEYS, and no others of that origin
 *   ensureDemoKey(products, config, now) → { keyId, secret, product }: the key of the demo page (RINGWIRE_DEMO=1), whose
 *                                          people see each other [PRES1]
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { readOrCreateSecret } from '../auth/jwt-secrets.ts'
import type { Config } from '../config/config.ts'
import type { Logger } from '../observability/logger.ts'
import type { ProductStore } from '../ports/product-store.ts'
import { hashSecret } from './product-auth.ts'

/** How long the secret that a key had before stays valid. */
const graceMs = 24 * 3_600_000

/** Puts every listed key and disables keys of this origin that have left the list; keys of other origins stay. */
export async function applyBootstrapKeys(
  products: ProductStore,
  config: Pick<Config, 'bootstrapKeys'>,
  now: number,
  logger: Logger,
): Promise<void> {
  const listed = new Set(config.bootstrapKeys.map(({ keyId }) => keyId))
  const stored = await products.listKeys(now)
  for (const { keyId, secret, products: names } of config.bootstrapKeys) {
    const before = stored.find((key) => key.keyId === keyId)
    if (before !== undefined && before.origin !== 'bootstrap') {
      logger.warn({ keyId }, 'RINGWIRE_BOOTSTRAP_KEYS replaces a key that was made otherwise')
    }
    // A backend that has not heard of a new secret yet, and nodes that still start with the old one, are not locked out.
    const isChanged = before?.origin === 'bootstrap' && !before.disabled
    const key = { keyId, secretHash: hashSecret(secret), products: names, origin: 'bootstrap' } as const
    await products.putKey(key, now, isChanged ? now + graceMs : undefined)
  }
  for (const key of stored) {
    if (key.origin !== 'bootstrap' || key.disabled || listed.has(key.keyId)) continue
    await products.setDisabled(key.keyId, true, now)
    logger.info({ keyId: key.keyId }, 'key disabled: RINGWIRE_BOOTSTRAP_KEYS no longer lists it')
  }
}

export interface DemoKey {
  readonly keyId: string
  readonly secret: string
  readonly product: string
}

export const demoKeyFile = 'demo-secret'

/** The key of the demo page: made with the first run, its secret kept in the data directory for the toy backend. */
export async function ensureDemoKey(
  products: ProductStore,
  config: Pick<Config, 'dataDir'>,
  now: number,
): Promise<DemoKey> {
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 })
  const path = join(config.dataDir, demoKeyFile)
  const secret = readOrCreateSecret(path, `${randomBytes(32).toString('base64url')}\n`).trim()
  const key: DemoKey = { keyId: 'demo', secret, product: 'demo' }
  await products.putKey(
    { keyId: key.keyId, secretHash: hashSecret(secret), products: [key.product], origin: 'demo' },
    now,
  )
  await products.changeSettings(key.product, { presence: 'peers' })
  return key
}
