/** What looking at a store found [CONF1]; it can be used where there are no problems. No text holds a secret. */
export interface CheckedStore {
  readonly problems: readonly string[]
  readonly warnings: readonly string[]
}
