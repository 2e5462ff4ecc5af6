import {
  defaultProductSettings,
  type ProductKey,
  type ProductSettings,
  type ProductStore,
  revocationKeptMs,
} from '../../ports/product-store.ts'
import { changeSettingsSql, settingsColumns, settingsOf, settingsValues } from '../sql/settings-rows.ts'
import type { Connections, Row, SqlParameter } from './connections.ts'
import type { Look } from './glances.ts'
import { policiesOf, policiesSql } from './policies.ts'

/** Revocations that are removed at once. */
const pruneSize = 500

/** The secrets that are valid at an instant, the current one first. */
const keysSql = (where: string) => `
  SELECT product_keys.key_id, products, disabled, origin, created_at::float8 AS created_at, secret_hash
  FROM product_keys JOIN product_key_secrets USING (key_id)
  WHERE ${where} (valid_until IS NULL OR valid_until > $1::float8::bigint)
  ORDER BY product_keys.key_id, valid_until IS NOT NULL, valid_until DESC`
const findKeySql = keysSql('product_keys.key_id = $2 AND')
const listKeysSql = keysSql('')

/** Makes a secret the current one, of the key that the statement around it names. */
const putSecretSql = (key: string) => `
  INSERT INTO product_key_secrets (key_id, secret_hash) SELECT key_id, $2::bytea FROM ${key}
  ON CONFLICT (key_id, secret_hash) DO UPDATE SET valid_until = NULL`

const putKeySql = `
  WITH key AS (
    INSERT INTO product_keys (key_id, products, disabled, origin, created_at)
    VALUES ($1, $3, false, $4, $5::float8::bigint)
    ON CONFLICT (key_id) DO UPDATE SET products = excluded.products, disabled = false, origin = excluded.origin
    RETURNING key_id
  ), retired AS (
    UPDATE product_key_secrets SET valid_until = $6::float8::bigint
    WHERE key_id = $1 AND valid_until IS NULL AND secret_hash <> $2::bytea AND $6::float8 > $5::float8
  ), dropped AS (
    DELETE FROM product_key_secrets
    WHERE key_id = $1 AND secret_hash <> $2::bytea
      AND ($6::float8 <= $5::float8 OR valid_until <= $5::float8::bigint)
  ) ${putSecretSql('key')}`

const rotateKeySql = `
  WITH key AS (
    SELECT key_id FROM product_keys WHERE key_id = $1 FOR UPDATE
  ), retired AS (
    UPDATE product_key_secrets SET valid_until = $3::float8::bigint
    WHERE key_id = $1 AND valid_until IS NULL AND secret_hash <> $2::bytea
  ), dropped AS (
    DELETE FROM product_key_secrets
    WHERE key_id = $1 AND valid_until <= $4::float8::bigint AND secret_hash <> $2::bytea
  ) ${putSecretSql('key')} RETURNING key_id`

const setDisabledSql = 'UPDATE product_keys SET disabled = $2::boolean WHERE key_id = $1 RETURNING key_id'
const listSettingsSql = `SELECT ${settingsColumns} FROM product_settings ORDER BY product`
export const settingsSql = `SELECT ${settingsColumns} FROM product_settings WHERE product = $1`
/** Parameters come as texts, as numbers of 64 bits, or as truth values. */
const typeOf = new Map([
  ['reveal_busy', '::boolean'],
  ['take', '::boolean'],
  ['ring_timeout_ms', '::int'],
])
const placeOf = (index: number, column: string) => `$${index + 1}${typeOf.get(column) ?? '::text'}`
const revokeSql = `
  INSERT INTO revocations (participant, not_before, changed_at)
  VALUES ($1, $2::float8::bigint, greatest(
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint, (SELECT max(changed_at) FROM revocations)
  ))
  ON CONFLICT (participant) DO UPDATE
  SET not_before = greatest(revocations.not_before, excluded.not_before), changed_at = excluded.changed_at`
export const revocationsSql = `
  SELECT participant, not_before::float8 AS "before", changed_at::float8 AS "changedAt"
  FROM revocations WHERE changed_at >= $1::float8::bigint`
/** A node's own clock may be wrong: what is young by the database's stays. */
const pruneRevocationsSql = `
  DELETE FROM revocations WHERE participant IN (
    SELECT participant FROM revocations
    WHERE not_before < least($1::float8, extract(epoch FROM statement_timestamp())::float8 * 1000 - ${revocationKeptMs})::bigint
      AND changed_at < (SELECT max(changed_at) FROM revocations)
    ORDER BY not_before LIMIT ${pruneSize})
  RETURNING 1`

/** Product keys and settings, each read from the database: what another process changed is seen at once. */
export function createProductStore(connections: Connections, look: Look, close: () => Promise<void>): ProductStore {
  const run = (text: string, values: readonly SqlParameter[]): Promise<Row[]> =>
    // Each of the writes leaves the same behind when it is done twice.
    connections.run(text, values, { repeatable: true })

  async function settings(product: string): Promise<ProductSettings> {
    const [row] = await look(settingsSql, [product])
    return row === undefined ? defaultProductSettings : settingsOf(row)
  }

  return {
    findKey: async (keyId, now) => keysOf(await run(findKeySql, [now, keyId]))[0],
    listKeys: async (now) => keysOf(await run(listKeysSql, [now])),
    async putKey({ keyId, secretHash, products, origin }, now, oldValidUntil = now) {
      await run(putKeySql, [keyId, secretHash, JSON.stringify(products), origin, now, oldValidUntil])
    },
    setDisabled: async (keyId, disabled) => (await run(setDisabledSql, [keyId, disabled])).length > 0,
    rotateKey: async (keyId, secretHash, oldValidUntil, now) =>
      (await run(rotateKeySql, [keyId, secretHash, oldValidUntil, now])).length > 0,
    settings,
    listSettings: async () =>
      (await run(listSettingsSql, [])).map((row) => ({ product: row.product, settings: settingsOf(row) })),
    async revoke(participant, before) {
      await run(revokeSql, [participant, before])
    },
    revocations: (since) => look(revocationsSql, [since]),
    pruneRevocations: async (before) => (await run(pruneRevocationsSql, [before])).length,
    policies: async () => policiesOf(await look(policiesSql, [])),
    async changeSettings(product, changes) {
      const sql = `${changeSettingsSql(changes, placeOf)} RETURNING ${settingsColumns}`
      const [row] = await run(sql, [product, ...settingsValues(changes)])
      return row === undefined ? settings(product) : settingsOf(row)
    },
    close,
  }
}

/** Rows of one key follow each other, one per secret. */
function keysOf(rows: readonly Row[]): ProductKey[] {
  const keys: (ProductKey & { secretHashes: Uint8Array[] })[] = []
  for (const row of rows) {
    const secretHash = new Uint8Array(row.secret_hash)
    const last = keys.at(-1)
    if (last !== undefined && last.keyId === row.key_id) last.secretHashes.push(secretHash)
    else {
      keys.push({
        keyId: row.key_id,
        secretHashes: [secretHash],
        products: JSON.parse(row.products) as string[],
        disabled: row.disabled,
        origin: row.origin,
        createdAt: row.created_at,
      })
    }
  }
  return keys
}
