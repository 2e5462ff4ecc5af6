export interface MigrationOptions {
  readonly dataDir: string
  /** DATABASE_URL. */
  readonly url: string
  readonly now: number
  /** Told now and then how many of how many calls are copied. */
  readonly onProgress: (copied: number, of: number) => void
}

export interface Migrated {
  /** False where all of it was there already. */
  readonly copied: boolean
  readonly calls: number
  readonly live: number
  readonly events: number
  readonly keys: number
  readonly settings: number
  /** SHA-256 of all calls with their events, hexadecimal: the same on both sides. */
  readonly sha256: string
}

/**
 * The copy is impossible, because the database holds something else or changes the values that it gets. Nothing was
 * changed.
 */
export class MigrationRefusal extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'MigrationRefusal'
  }
}
