import type { ExtendedAuthOk, SessionReset } from '@ringwire/protocol/events/auth'
import type { SessionStorage } from './types.ts'
import { isObject } from './wire.ts'

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
      const named = `resume=${encodeURIComponent(id)}&epoch=${encodeURIComponent(epoch)}`
      return `ext=1&${named}&seq=${seq}&n=${Math.max(replied, repliedBefore)}`
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
      if (left === undefined) return false
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
  try {
    const left: unknown = JSON.parse(text)
    const isWhole = isObject(left) && typeof left.id === 'string' && typeof left.epoch === 'string'
    const isCounted = isWhole && Number.isInteger(left.seq) && Number.isInteger(left.replied)
    return isCounted ? (left as unknown as Resume) : undefined
  } catch {
    return undefined
  }
}

/** Writes through to the application's storage, which may be slow or refuse. */
export function createKeeper(storage: SessionStorage | undefined, key: string, onError: (cause: unknown) => void) {
  let wanted: string | undefined
  let written: string | undefined
  let isWriting = false

  /** One after another: a slow storage must not end with an older word. */
  function write(): void {
    if (storage === undefined || isWriting || wanted === written) return
    written = wanted
    try {
      const pending = wanted === undefined ? storage.removeItem(key) : storage.setItem(key, wanted)
      if (!(pending instanceof Promise)) return
      isWriting = true
      pending.catch(onError).finally(() => {
        isWriting = false
        write()
      })
    } catch (cause) {
      onError(cause)
    }
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
      write()
    },
  }
}

export type Keeper = ReturnType<typeof createKeeper>
