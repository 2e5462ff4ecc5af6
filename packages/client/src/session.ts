import type { Capability } from '@ringwire/protocol/capabilities'
import type { ExtendedAuthOk, SessionReset } from '@ringwire/protocol/events/auth'
import { isObject, parseJson } from './json.ts'
import type { SessionStorage } from './types.ts'

type Resume = { readonly id: string; readonly epoch: string; seq: number; readonly replied: number }

/**
 * The key to a session: its name, its epoch and the last push that was seen [RES1]. `can`: what this client understands
 * beside [EXT6].
 */
export function createSession(can: readonly Capability[] = []) {
  const extended = can.length > 0 ? `ext=1&can=${can}` : 'ext=1'
  /** `replied`: the replies that the previous page saw. */
  let session: Resume | undefined

  return {
    /** The query of the connection: a new session, or the one that there is. */
    query(replied: number): string {
      if (!session) return extended
      const [name, epoch] = [session.id, session.epoch].map(encodeURIComponent)
      return `${extended}&resume=${name}&epoch=${epoch}&seq=${session.seq}&n=${Math.max(replied, session.replied)}`
    },

    /** It is known from now on: by `auth.ok`, or by a reset after its log was lost [RES4]. If it is new, so is `seq`. */
    began({ session_id: id, epoch, recovered }: SessionReset & Partial<Pick<ExtendedAuthOk, 'recovered'>>): void {
      session = { id, epoch, seq: (recovered && session?.seq) || 0, replied: 0 }
    },

    /** Every push comes once, in order and without gaps [EXT1]; anything else is a socket that cannot be trusted. */
    see(seq: number): 'next' | 'seen' | 'gap' {
      const last = session?.seq ?? 0
      if (seq <= last) return 'seen'
      if (!session || seq > last + 1) return 'gap'
      session.seq = seq
      return 'next'
    },

    forget(): void {
      session = undefined
    },

    snapshot: (replied: number): string | undefined => session && JSON.stringify({ ...session, replied }),

    /** Goes on with what another page left, if that is anything. */
    restore(text: string | null): void {
      session = text === null ? undefined : parse(text)
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
