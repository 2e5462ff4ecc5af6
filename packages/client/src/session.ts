import type { ExtendedAuthOk, SessionReset } from '@ringwire/protocol/events/auth'
import type { SessionStorage } from './types.ts'
import { isObject, parseJson } from './wire.ts'

type Resume = { readonly id: string; readonly epoch: string; readonly seq: number; readonly replied: number }

/** What is needed to go on with a session: its name, its epoch and the last push that was seen [RES1]. */
export function createSession() {
  let id: string | undefined
  let epoch = ''
  let seq = 0
  /** What the page before this one saw of its replies. */
  let repliedBefore = 0

  return {
    id: (): string | undefined => id,

    /** The query of the connection: a new session, or the one that there is. */
    query(replied: number): string {
      if (id === undefined) return 'ext=1'
      const [name, incarnation] = [id, epoch].map(encodeURIComponent)
      return `ext=1&resume=${name}&epoch=${incarnation}&seq=${seq}&n=${Math.max(replied, repliedBefore)}`
    },

    began(data: ExtendedAuthOk): void {
      if (!data.recovered) seq = 0
      id = data.session_id
      epoch = data.epoch
      repliedBefore = 0
    },

    /** Its log was lost; `seq` begins again at 1 [RES4]. */
    reset(data: SessionReset): void {
      id = data.session_id
      epoch = data.epoch
      seq = 0
    },

    /** Every push comes once, in order and without gaps [EXT1]; anything else is a socket that cannot be trusted. */
    see(pushed: number): 'next' | 'seen' | 'gap' {
      if (pushed <= seq) return 'seen'
      if (pushed > seq + 1) return 'gap'
      seq = pushed
      return 'next'
    },

    forget(): void {
      id = undefined
      seq = 0
      repliedBefore = 0
    },

    snapshot: (replied: number): string | undefined =>
      id === undefined ? undefined : JSON.stringify({ id, epoch, seq, replied } satisfies Resume),

    /** Goes on with what another page left; false where that is nothing. */
    restore(text: string | null): boolean {
      const left = text === null ? undefined : parse(text)
      if (!left) return false
      id = left.id
      epoch = left.epoch
      seq = left.seq
      repliedBefore = left.replied
      return true
    },
  }
}

export type Session = ReturnType<typeof createSession>

function parse(text: string): Resume | undefined {
  const left = parseJson(text)
  const isWhole = isObject(left) && typeof left.id === 'string' && typeof left.epoch === 'string'
  const isCounted = isWhole && Number.isInteger(left.seq) && Number.isInteger(left.replied)
  return isCounted ? (left as unknown as Resume) : undefined
}

/** Writes through to the application's storage, which may be slow or refuse. */
export function createKeeper(storage: SessionStorage | undefined, key: string, onError: (cause: unknown) => void) {
  let wanted: string | undefined
  let written: string | undefined
  let isWriting = false

  /** One after another: a slow storage must not end with an older word. */
  async function write(): Promise<void> {
    if (!storage || isWriting) return
    isWriting = true
    while (wanted !== written) {
      written = wanted
      try {
        // One that answers at once has it at once: a page may be gone in the next moment.
        const pending = wanted === undefined ? storage.removeItem(key) : storage.setItem(key, wanted)
        if (pending) await pending
      } catch (cause) {
        onError(cause)
      }
    }
    isWriting = false
  }

  return {
    async load(): Promise<string | null> {
      try {
        const text = (await storage?.getItem(key)) ?? null
        wanted ??= text ?? undefined
        written = text ?? undefined
        return text
      } catch (cause) {
        onError(cause)
        return null
      }
    },
    save(text: string | undefined): void {
      wanted = text
      void write()
    },
  }
}

export type Keeper = ReturnType<typeof createKeeper>
