import type { Unsubscribe } from './types.ts'

export interface ListenersOptions<Events extends object> {
  /** Throws if `on` is called with something that it does not take. */
  readonly admit?: ((event: keyof Events, call: unknown) => void) | undefined
  /** Hears what rejected the promise of a listener; false if nobody takes it. Without it, such a rejection stays unhandled. */
  readonly rejected?: ((cause: unknown) => boolean) | undefined
}

/**
 * Typed events. A listener that throws stops neither the others nor the client: its error surfaces on its own. A listener
 * may be async; `rejected` gets what its promise is rejected with.
 */
export function createListeners<Events extends object>({ admit, rejected }: ListenersOptions<Events> = {}) {
  type Listener = { readonly event: keyof Events; readonly call: (payload: never) => unknown }
  let all: readonly Listener[] = []

  function refused(error: unknown): void {
    if (!rejected?.(error)) throw error
  }

  return {
    on<E extends keyof Events>(event: E, call: (payload: Events[E]) => void): Unsubscribe {
      admit?.(event, call)
      const listener: Listener = { event, call }
      all = [...all, listener]
      return () => {
        all = all.filter((it) => it !== listener)
      }
    },
    emit<E extends keyof Events>(event: E, payload: Events[E]): void {
      for (const listener of all) {
        if (listener.event !== event || !all.includes(listener)) continue
        try {
          const returned = (listener.call as (payload: Events[E]) => unknown)(payload) as
            | Partial<Promise<void>>
            | undefined
          // A listener of `error` that fails would otherwise hear of itself for ever.
          if (event !== 'error') void returned?.then?.(undefined, refused)
        } catch (error) {
          queueMicrotask(() => {
            throw error
          })
        }
      }
    },
    has: (event: keyof Events): boolean => all.some((it) => it.event === event),
  }
}

export type Listeners<Events extends object> = ReturnType<typeof createListeners<Events>>
