import type { Policies } from '../../ports/product-store.ts'

/** One statement, because every node asks for it all the time. */
export const policiesSql = `
  SELECT 'relay' AS kind, product AS name FROM product_settings WHERE media = 'relay'
  UNION ALL SELECT 'presence', product FROM product_settings WHERE presence = 'peers'
  UNION ALL SELECT 'fixed', product FROM product_settings WHERE NOT take
  UNION ALL SELECT 'disabled', key_id FROM product_keys WHERE disabled`

export type PolicyKind = 'relay' | 'presence' | 'fixed' | 'disabled'

export function policiesOf(rows: readonly { readonly kind: PolicyKind; readonly name: string }[]): Policies {
  const namesOf = (wanted: string) => rows.filter(({ kind }) => kind === wanted).map(({ name }) => name)
  return {
    relayOnly: namesOf('relay'),
    presence: namesOf('presence'),
    fixed: namesOf('fixed'),
    disabledKeys: namesOf('disabled'),
  }
}
