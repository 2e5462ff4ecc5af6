/** A small break of the code that delivers. */
export interface Mutation {
  readonly name: string
  /** Below `packages/server/src/`. */
  readonly file: string
  /** What stands there once. */
  readonly find: string
  readonly put: string
  /** Each seed breaks what it draws, where the usual faults show it late. */
  readonly mix?: 'own'
}
