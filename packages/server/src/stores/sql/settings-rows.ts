import { defaultProductSettings, type ProductSettings } from '../../ports/product-store.ts'

/** The settings of a product as its row holds them: what is true or false may be 1 or 0. */
export interface SettingsRow {
  busy: ProductSettings['busy']
  reveal_busy: boolean | number
  ring_timeout_ms: number | null
  media: ProductSettings['media']
  presence: ProductSettings['presence']
  take: boolean | number
  invite_url: string | null
  invite_secret: string | null
  invite_failure: ProductSettings['inviteFailure']
}

type Name = keyof ProductSettings

const columnOf: Readonly<Record<Name, keyof SettingsRow>> = {
  busy: 'busy',
  revealBusy: 'reveal_busy',
  ringTimeoutMs: 'ring_timeout_ms',
  media: 'media',
  presence: 'presence',
  take: 'take',
  inviteUrl: 'invite_url',
  inviteSecret: 'invite_secret',
  inviteFailure: 'invite_failure',
}
const names = Object.keys(columnOf) as Name[]

/** Columns are named, also for the day on which a newer version has added one: a prepared statement keeps its columns. */
export const settingsColumns: readonly string[] = ['product', ...Object.values(columnOf)]

export function settingsOf(row: SettingsRow): ProductSettings {
  return {
    busy: row.busy,
    revealBusy: Boolean(row.reveal_busy),
    ringTimeoutMs: row.ring_timeout_ms,
    media: row.media,
    presence: row.presence,
    take: Boolean(row.take),
    inviteUrl: row.invite_url,
    inviteSecret: row.invite_secret,
    inviteFailure: row.invite_failure,
  }
}

/** The first secret stays until it is removed: two that set one at once are answered the same [HOOK5]. */
const secretSql = `invite_secret = CASE WHEN excluded.invite_secret IS NOT NULL
  THEN coalesce(product_settings.invite_secret, excluded.invite_secret) END`

/**
 * Changes some settings of a product, which has the default ones until then. `place` writes the place of a parameter: of the
 * product first, then of `settingsValues`.
 */
export function changeSettingsSql(
  changes: Partial<ProductSettings>,
  place: (index: number, column: string) => string,
): string {
  const set = names
    .filter((name) => changes[name] !== undefined)
    .map((name) => (name === 'inviteSecret' ? secretSql : `${columnOf[name]} = excluded.${columnOf[name]}`))
  return `
    INSERT INTO product_settings (${settingsColumns}) VALUES (${settingsColumns.map((column, index) => place(index, column))})
    ON CONFLICT (product) DO ${set.length === 0 ? 'NOTHING' : `UPDATE SET ${set}`}`
}

/** The settings of a product without a row, in the order of `settingsColumns` after the product. */
export function settingsValues(changes: Partial<ProductSettings>): (string | number | boolean | null)[] {
  return names.map((name) => changes[name] ?? defaultProductSettings[name])
}
