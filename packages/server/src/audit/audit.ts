/**
 * Writes down what operators, backends and commands change [ADM3].
 *
 *   const audit = createAudit({ store, now, retentionMs, onError })
 *   await audit.record({ actor, action: 'key.disable', subject: keyId })
 *   audit.start(), audit.stop()   old entries go
 */
import { type AuditActor, type AuditEntry, type AuditStore, auditIdAt, newAuditId } from '../ports/audit.ts'

/** Fields that are left out are empty. */
export interface Change extends Partial<Omit<AuditEntry, 'id' | 'actor' | 'action'>> {
  readonly actor: AuditActor
  readonly action: string
}

export interface Audit {
  /** Never rejects: the change was made. A change that could not be written down is an error in the log. */
  record(change: Change): Promise<void>
  start(): void
  stop(): void
}

export interface AuditOptions {
  readonly store: AuditStore
  /** In ms since the epoch. */
  readonly now: () => number
  /** How long entries are kept, in ms; null: for ever. */
  readonly retentionMs: number | null
  readonly onError: (error: unknown, change?: Change) => void
}

/** How often old entries are looked for, and how long after the start for the first time, in ms. */
const everyMs = 60 * 60_000
const firstMs = 60_000
/** Between two steps, so that others can write, in ms. */
const pauseMs = 20

export function createAudit({ store, now, retentionMs, onError }: AuditOptions): Audit {
  let timer: Timer | undefined
  let isStopped = false

  async function prune(keptMs: number): Promise<void> {
    try {
      while (!isStopped && (await store.prune(auditIdAt(now() - keptMs))) > 0) await Bun.sleep(pauseMs)
    } catch (error) {
      if (!isStopped) onError(error)
    }
    if (!isStopped) timer = setTimeout(prune, everyMs, keptMs)
  }

  return {
    async record(change) {
      try {
        await store.add(entryOf(change, now()))
      } catch (error) {
        onError(error, change)
      }
    },
    start() {
      if (retentionMs !== null) timer = setTimeout(prune, firstMs, retentionMs)
    },
    stop() {
      isStopped = true
      clearTimeout(timer)
    },
  }
}

/** `at` in ms since the epoch. */
export function entryOf(change: Change, at: number): AuditEntry {
  return { product: '', participant: null, subject: '', detail: {}, ...change, id: newAuditId(at) }
}
