import type { MediaKind, MediaStorage } from './types.ts'

type Kept = Readonly<Record<MediaKind | 'held', boolean>>

/** Undefined where there is none, or where the browser refuses it to this page. */
export function pageStorage(): MediaStorage | undefined {
  try {
    return globalThis.sessionStorage
  } catch {
    return undefined
  }
}

/**
 * The muted devices of one call, and whether it is on hold, for the page that is loaded again. A storage that refuses
 * keeps nothing: the call goes on. It reads the uuid each time: it may change with a merge of invites [INV6, INV7].
 */
export function createKeptMutes(storage: MediaStorage | null | undefined, callUuid: () => string) {
  let before: string | undefined

  function attempt<T>(work: (storage: MediaStorage, key: string) => T): T | undefined {
    const key = `ringwire.muted.${callUuid()}`
    try {
      if (before && before !== key) storage?.removeItem(before)
      before = key
      return storage ? work(storage, key) : undefined
    } catch {
      return undefined
    }
  }

  return {
    load: (): Kept => ({
      audio: false,
      video: false,
      held: false,
      ...attempt((storage, key) => JSON.parse(storage.getItem(key) ?? '{}')),
    }),
    save: (kept: Kept) => attempt((storage, key) => storage.setItem(key, JSON.stringify(kept))),
    forget: () => attempt((storage, key) => storage.removeItem(key)),
  }
}

export type KeptMutes = ReturnType<typeof createKeptMutes>
