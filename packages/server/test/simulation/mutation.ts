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
  /** The first seed whose world is lived; 1 without it. Which world shows a break is chance: it differs with every change of the service. */
  readonly from?: number
}
