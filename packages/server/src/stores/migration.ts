/**
 * From SQLite to PostgreSQL: all calls with their events, product keys, settings, devices, tokens that were taken back, timelines,
 * webhook endpoints and what did not arrive there.
 *
 *   migrateToPostgres(options) → what was copied, or what was there already
 */
import { type Migrated, type MigrationOptions, MigrationRefusal } from '../ports/migration.ts'
import { openPostgresContent, type PostgresContent } from './postgres/content.ts'
import {
  type Content,
  type ContentRow,
  type Fingerprint,
  fingerprintOf,
  keyColumns,
  leftColumns,
  type PlainTable,
  type ProductContent,
  pagesOf,
  plainTables,
  sameRow,
  secretColumns,
  takeFingerprint,
} from './sql/content.ts'
import { settingsColumns } from './sql/settings-rows.ts'
import { endpointColumns } from './sql/subscribers.ts'
import { openSqliteContent, type SqliteContent } from './sqlite/content.ts'

/**
 * Copies a data directory that nobody serves into a database that nobody serves, in one transaction: whenever it is
 * interrupted, nothing was copied, and it can be run again. If the commit itself was interrupted, the next run finds
 * everything there and says so. Before the commit both sides are counted and compared.
 *
 * Rejects with a MigrationRefusal, or with a StoreError where one of the two cannot be used.
 */
export async function migrateToPostgres(options: MigrationOptions): Promise<Migrated> {
  const { dataDir, url, now, onProgress } = options
  const source = await openSqliteContent(dataDir, now)
  try {
    const target = await openPostgresContent(url, now)
    try {
      return await copyAll(source, target, onProgress)
    } finally {
      await target.close()
    }
  } finally {
    source.close()
  }
}

async function copyAll(
  source: SqliteContent,
  target: PostgresContent,
  onProgress: MigrationOptions['onProgress'],
): Promise<Migrated> {
  const products = await source.products()
  const counts = { keys: products.keys.length, settings: products.settings.length }
  if ((await target.counts()).calls > 0) {
    const fingerprint = await fingerprintOf(source)
    if (!agree(fingerprint, await fingerprintOf(target))) {
      throw new MigrationRefusal(
        'The database holds calls that are not those of the data directory: it has to be empty, or to hold just those.',
      )
    }
    const copied = await copyProducts(products, target)
    if (copied) await target.commit()
    return { ...fingerprint, ...counts, copied }
  }
  await copyProducts(products, target)
  await copyWebhooks(source, target)
  for (const table of Object.keys(plainTables) as PlainTable[]) await copyRows(table, source, target)
  const fingerprint = await copyCalls(source, target, onProgress)
  await check(source, fingerprint, target)
  await target.commit()
  return { ...fingerprint, ...counts, copied: true }
}

async function copyRows(table: PlainTable, source: SqliteContent, target: PostgresContent): Promise<void> {
  for (const page of source.pagesOf(table)) {
    if ((await target.addRows(table, page)) === page.length) continue
    throw new MigrationRefusal(`The database holds other ${table} of the same names.`)
  }
}

async function copyWebhooks(source: SqliteContent, target: PostgresContent): Promise<void> {
  const endpoints = await source.webhookEndpoints()
  await target.addWebhookEndpoints(endpoints)
  const there = await target.webhookEndpoints()
  if (!endpoints.every((row) => there.some((other) => sameRow(row, other, endpointColumns)))) {
    throw new MigrationRefusal('The database holds other webhook endpoints of the same ids.')
  }
  for (let last = ''; ; ) {
    const page = await source.deliveriesAfter(last)
    const end = page.at(-1)
    if (end === undefined) return
    const copied = await target.addDeliveries(page)
    if (!page.every((row, index) => sameRow(row, copied[index] ?? {}, leftColumns))) {
      throw new MigrationRefusal('The webhooks that were copied are not what they were copied from.')
    }
    last = String(end.id)
  }
}

async function copyCalls(
  source: Content,
  target: PostgresContent,
  onProgress: MigrationOptions['onProgress'],
): Promise<Fingerprint> {
  const { calls } = await source.counts()
  const fingerprint = takeFingerprint()
  let copied = 0
  for await (const page of pagesOf(source)) {
    fingerprint.add(page)
    await target.addCalls(page)
    copied += page.calls.length
    onProgress(copied, calls)
  }
  return fingerprint.finish()
}

/** Everything that the source has was read, and the target gives the same back. */
async function check(source: Content, fingerprint: Fingerprint, target: Content): Promise<void> {
  const there = await fingerprintOf(target)
  const counts = [await source.counts(), await target.counts()]
  const whole = counts.every(({ calls, events }) => calls === fingerprint.calls && events === fingerprint.events)
  if (whole && agree(fingerprint, there)) return
  throw new MigrationRefusal(`The copy is not what it was made from: ${JSON.stringify({ fingerprint, there, counts })}`)
}

function agree(a: Fingerprint, b: Fingerprint): boolean {
  return a.sha256 === b.sha256 && a.calls === b.calls && a.events === b.events && a.live === b.live
}

/** True where something had to be written. */
async function copyProducts(source: ProductContent, target: PostgresContent): Promise<boolean> {
  const there = await target.products()
  const keys = source.keys.filter((key) => !hasKey(there, key, source))
  const settings = source.settings.filter(
    (row) => !there.settings.some((other) => sameRow(row, other, settingsColumns)),
  )
  const otherKeys = keys.filter((key) =>
    there.keys.some((other) => other.key_id === key.key_id && !isMadeAtStart(other)),
  )
  if (otherKeys.length > 0) {
    throw new MigrationRefusal(`The database holds other keys of the same name: ${otherKeys.map((key) => key.key_id)}.`)
  }
  const otherSettings = settings.filter((row) => there.settings.some(({ product }) => product === row.product))
  if (otherSettings.length > 0) {
    const names = otherSettings.map(({ product }) => product)
    throw new MigrationRefusal(`The database holds other settings of the same product: ${names}.`)
  }
  const copied = new Set(keys.map((key) => key.key_id))
  await target.addKeys(
    keys,
    source.secrets.filter((secret) => copied.has(secret.key_id ?? null)),
  )
  await target.addSettings(settings)
  const after = await target.products()
  const isWhole =
    source.keys.every((key) => hasKey(after, key, source)) &&
    source.settings.every((row) => after.settings.some((other) => sameRow(row, other, settingsColumns)))
  if (!isWhole) throw new MigrationRefusal('The keys or settings that were copied are not what they were copied from.')
  return keys.length + settings.length > 0
}

/** The key with just the secrets that it has in the source. */
function hasKey(content: ProductContent, key: ContentRow, source: ProductContent): boolean {
  const isOf = (row: ContentRow) => row.key_id === key.key_id
  const here = content.secrets.filter(isOf)
  const secrets = source.secrets.filter(isOf)
  return (
    content.keys.some((other) => sameRow(key, other, keyColumns)) &&
    here.length === secrets.length &&
    secrets.every((secret, index) => sameRow(secret, here[index] ?? {}, secretColumns))
  )
}

/** Made again by every start of the service: which one is there does not matter. */
function isMadeAtStart(key: ContentRow): boolean {
  return key.origin === 'bootstrap' || key.origin === 'demo'
}
