/**
 * The policies of all products and keys that a process knows, so that nothing waits for a store: which products only pass
 * relayed addresses [PRIV1], what their participants may do, and which keys are disabled [KEY1]. Changes of another
 * process arrive within `lookMs`.
 *
 *   const policies = createPolicies({ products, onDisabled, onError })
 *   await policies.start()                  reads them; rejects where the store fails
 *   policies.isRelayOnly(product), policies.isDisabled(keyTag)
 */
import { keyTag } from '../auth/key-tag.ts'
import type { ProductStore } from '../ports/product-store.ts'
import { lookEvery } from '../time/looking.ts'

export interface PoliciesOptions {
  readonly products: Pick<ProductStore, 'policies'>
  /** Called when a key is disabled that was not before. */
  readonly onDisabled: () => void
  readonly onError: (error: unknown) => void
}

export interface ProductPolicies {
  start(): Promise<void>
  stop(): void
  isRelayOnly(product: string): boolean
  /** Whether participants of the product see if their peers are there [PRES1]. */
  isPresenceOpen(product: string): boolean
  /** Whether devices of a participant may take answered calls from each other [TAKE1]. */
  mayTake(product: string): boolean
  /** Whether the key with this tag is disabled now. */
  isDisabled(tag: string | null): boolean
}

/** Sockets everywhere are closed within a second; a look takes a moment, and closing them, too. */
const lookMs = 500

export function createPolicies({ products, onDisabled, onError }: PoliciesOptions): ProductPolicies {
  let relayOnly: ReadonlySet<string> = new Set()
  let presence: ReadonlySet<string> = new Set()
  let fixed: ReadonlySet<string> = new Set()
  let disabled: ReadonlySet<string> = new Set()

  async function look(): Promise<void> {
    const found = await products.policies()
    const before = disabled
    relayOnly = new Set(found.relayOnly)
    presence = new Set(found.presence)
    fixed = new Set(found.fixed)
    disabled = new Set(found.disabledKeys.map(keyTag))
    if ([...disabled].some((tag) => !before.has(tag))) onDisabled()
  }

  return {
    ...lookEvery(lookMs, look, onError),
    isRelayOnly: (product) => relayOnly.has(product),
    isPresenceOpen: (product) => presence.has(product),
    mayTake: (product) => !fixed.has(product),
    isDisabled: (tag) => tag !== null && disabled.has(tag),
  }
}
