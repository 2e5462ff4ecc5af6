import { useSyncExternalStore } from 'react'

/** A value that lives outside of components; a change is a new value. */
export function createStore<Value>(value: Value) {
  const listeners = new Set<() => void>()
  return {
    get: () => value,
    set(next: Value): void {
      value = next
      for (const listener of [...listeners]) listener()
    },
    subscribe(listener: () => void): () => void {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

export type Store<Value> = Pick<ReturnType<typeof createStore<Value>>, 'get' | 'subscribe'>

export function useStore<Value>({ subscribe, get }: Store<Value>): Value {
  return useSyncExternalStore(subscribe, get, get)
}
