import type { Database } from 'bun:sqlite'
import {
  defaultProductSettings,
  type Policies,
  type ProductKey,
  type ProductStore,
  type Revocation,
} from '../../ports/product-store.ts'
import {
  changeSettingsSql,
  type SettingsRow,
  settingsColumns,
  settingsOf,
  settingsValues,
} from '../sql/settings-rows.ts'
import { attempt } from './connection.ts'
import { inPages, rowsOfPage } from './pages.ts'
import type { RowStatement, RowWrites } from './row-writes.ts'

interface KeyRow {
  key_id: string
  products: string
  disabled: number
  origin: ProductKey['origin']
  created_at: number
  secret_hash: Uint8Array
}

/** Revocations that are removed at once. */
const pruneSize = 200

/** The secrets that are valid at an instant, the current one first. */
const keysSql = (where: string) => `
  SELECT product_keys.key_id, products, disabled, origin, created_at, secret_hash
  FROM product_keys JOIN product_key_secrets USING (key_id)
  WHERE ${where} (valid_until IS NULL OR valid_until > ?)
  ORDER BY product_keys.key_id, valid_until IS NOT NULL, valid_until DESC`

const revokeSql = `
  INSERT INTO revocations (participant, not_before, changed_at)
  VALUES (?, ?, max(?, (SELECT coalesce(max(changed_at), 0) FROM revocations)))
  ON CONFLICT (participant) DO UPDATE SET not_before = max(not_before, excluded.not_before), changed_at = excluded.changed_at`
const revocationsSql = `
  SELECT participant, not_before AS "before", changed_at AS changedAt FROM revocations
  WHERE (changed_at, participant) > (?, ?) ORDER BY changed_at, participant LIMIT ${rowsOfPage}`
/** Names of which each process keeps all in memory. */
const namesSql = (column: string, from: string) =>
  `SELECT ${column} AS name FROM ${from} AND ${column} > ? ORDER BY ${column} LIMIT ${rowsOfPage}`
const policiesSql = {
  relayOnly: namesSql('product', "product_settings WHERE media = 'relay'"),
  presence: namesSql('product', "product_settings WHERE presence = 'peers'"),
  fixed: namesSql('product', 'product_settings WHERE take = 0'),
  disabledKeys: namesSql('key_id', 'product_keys WHERE disabled <> 0'),
}
export const pruneRevocationsSql = `
  DELETE FROM revocations WHERE participant IN (
    SELECT participant FROM revocations WHERE not_before < ? AND changed_at < (SELECT max(changed_at) FROM revocations)
    LIMIT ${pruneSize}
  )`

/**
 * Product keys and settings, each read from the file: what another process changed is seen at once. Keys are
 * written at a start and from the command line, on the calling thread. Changes while the service runs, settings and
 * revocations, are written by the writer thread.
 */
export function createProductStore(db: Database, writes: RowWrites): ProductStore {
  const settings = db.query<SettingsRow, [string]>(`SELECT ${settingsColumns} FROM product_settings WHERE product = ?`)
  const listSettings = db.query<SettingsRow & { product: string }, []>(
    `SELECT ${settingsColumns} FROM product_settings ORDER BY product`,
  )
  const revocations = db.query<Revocation, [number, string]>(revocationsSql)

  const write = (statement: RowStatement) => writes.rows({ type: 'rows', statements: [statement], isLight: false })

  const settingsNow = (product: string) =>
    attempt(() => {
      const row = settings.get(product)
      return row === null ? defaultProductSettings : settingsOf(row)
    })

  async function namesOf(policy: keyof Policies): Promise<string[]> {
    const page = db.query<{ name: string }, [string]>(policiesSql[policy])
    const rows = await inPages(
      '',
      (after) => page.all(after),
      ({ name }) => name,
    )
    return rows.map(({ name }) => name)
  }

  return {
    ...createKeys(db),
    settings: settingsNow,
    listSettings: () =>
      attempt(() => listSettings.all().map((row) => ({ product: row.product, settings: settingsOf(row) }))),
    async changeSettings(product, changes) {
      const values = settingsValues(changes).map((value) => (typeof value === 'boolean' ? Number(value) : value))
      await write([changeSettingsSql(changes, () => '?'), product, ...values])
      return settingsNow(product)
    },
    async policies() {
      const [relayOnly, presence] = [await namesOf('relayOnly'), await namesOf('presence')]
      return { relayOnly, presence, fixed: await namesOf('fixed'), disabledKeys: await namesOf('disabledKeys') }
    },
    async revoke(participant, before, now) {
      await write([revokeSql, participant, before, now])
    },
    revocations: (since) =>
      inPages(
        { changedAt: since, participant: '' },
        ({ changedAt, participant }) => revocations.all(changedAt, participant),
        (last: Pick<Revocation, 'changedAt' | 'participant'>) => last,
      ),
    pruneRevocations: (before) => write([pruneRevocationsSql, before]),
    close: () => db.close(),
  }
}

type Keys = Pick<ProductStore, 'findKey' | 'listKeys' | 'putKey' | 'setDisabled' | 'rotateKey'>

function createKeys(db: Database): Keys {
  const findKey = db.query<KeyRow, [string, number]>(keysSql('product_keys.key_id = ? AND'))
  const listKeys = db.query<KeyRow, [number]>(keysSql(''))
  const putKey = db.query(`
    INSERT INTO product_keys (key_id, products, disabled, origin, created_at) VALUES (?, ?, 0, ?, ?)
    ON CONFLICT (key_id) DO UPDATE SET products = excluded.products, disabled = 0, origin = excluded.origin`)
  const putSecret = db.query(`
    INSERT INTO product_key_secrets (key_id, secret_hash) VALUES (?, ?)
    ON CONFLICT (key_id, secret_hash) DO UPDATE SET valid_until = NULL`)
  const dropSecrets = db.query('DELETE FROM product_key_secrets WHERE key_id = ? AND secret_hash <> ?')
  const dropOldSecrets = db.query('DELETE FROM product_key_secrets WHERE key_id = ? AND valid_until <= ?')
  const retireSecret = db.query(
    'UPDATE product_key_secrets SET valid_until = ? WHERE key_id = ? AND valid_until IS NULL AND secret_hash <> ?',
  )
  const hasKey = db.query('SELECT 1 FROM product_keys WHERE key_id = ?')
  const setDisabled = db.query('UPDATE product_keys SET disabled = ? WHERE key_id = ?')

  return {
    findKey: (keyId, now) => attempt(() => keysOf(findKey.all(keyId, now))[0]),
    listKeys: (now) => attempt(() => keysOf(listKeys.all(now))),
    putKey(key, now, oldValidUntil = now) {
      const put = db.transaction(() => {
        putKey.run(key.keyId, JSON.stringify(key.products), key.origin, now)
        retireSecret.run(oldValidUntil, key.keyId, key.secretHash)
        putSecret.run(key.keyId, key.secretHash)
        if (oldValidUntil > now) dropOldSecrets.run(key.keyId, now)
        else dropSecrets.run(key.keyId, key.secretHash)
      })
      return attempt(() => put.immediate())
    },
    setDisabled: (keyId, disabled) => attempt(() => setDisabled.run(disabled ? 1 : 0, keyId).changes > 0),
    rotateKey(keyId, secretHash, oldValidUntil, now) {
      const rotate = db.transaction(() => {
        if (hasKey.get(keyId) === null) return false
        retireSecret.run(oldValidUntil, keyId, secretHash)
        putSecret.run(keyId, secretHash)
        dropOldSecrets.run(keyId, now)
        return true
      })
      return attempt(() => rotate.immediate())
    },
  }
}

/** Rows of one key follow each other, one per secret. */
function keysOf(rows: readonly KeyRow[]): ProductKey[] {
  const keys: (ProductKey & { secretHashes: Uint8Array[] })[] = []
  for (const row of rows) {
    const last = keys.at(-1)
    if (last?.keyId === row.key_id) last.secretHashes.push(row.secret_hash)
    else {
      keys.push({
        keyId: row.key_id,
        secretHashes: [row.secret_hash],
        products: JSON.parse(row.products) as string[],
        disabled: row.disabled !== 0,
        origin: row.origin,
        createdAt: row.created_at,
      })
    }
  }
  return keys
}
