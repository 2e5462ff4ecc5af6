import type { MediaKind, MediaStorage } from './types.ts'

type Muted = Readonly<Record<MediaKind, boolean>>

const keyOf = (callUuid: string) => `ringwire.muted.${callUuid}`

/** Undefined where there is none, or where the browser refuses it to this page. */
export function pageStorage(): MediaStorage | undefined {
  try {
    return globalThis.sessionStorage
  } catch {
    return undefined
  }
}

/**
 * What is muted in one call, for the page that is loaded again. A storage that refuses keeps nothing: the call goes on.
 * `callUuid` may change with a merge of invites [INV6, INV7].
 */
export function createKeptMutes(storage: MediaStorage | undefined, callUuid: () => string) {
  let written: string | undefined

  function attempt<T>(work: (storage: MediaStorage) => T): T | undefined {
    try {
      return storage && work(storage)
    } catch {
      return undefined
    }
  }

  function forget(): void {
    const key = written
    written = undefined
    if (key) attempt((storage) => storage.removeItem(key))
  }

  return {
    load(): Muted {
      const key = keyOf(callUuid())
      const kept = attempt((storage) => storage.getItem(key))?.split(' ') ?? []
      if (kept.length > 0) written = key
      return { audio: kept.includes('audio'), video: kept.includes('video') }
    },
    save(muted: Muted): void {
      forget()
      const kinds = (['audio', 'video'] as const).filter((kind) => muted[kind])
      if (kinds.length === 0) return
      const key = keyOf(callUuid())
      written = key
      attempt((storage) => storage.setItem(key, kinds.join(' ')))
    },
    forget,
  }
}
