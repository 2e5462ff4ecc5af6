import type { Unsubscribe } from './types.ts'

/**
 * Typed events. A listener that throws stops neither the others nor the client: its error surfaces on its own. `admit`
 * throws where `on` is called with something that it does not take.
 */
export function createListeners<Events extends object>(admit?: (event: keyof Events, call: unknown) => void) {
  type Listener = { readonly event: keyof Events; readonly call: (payload: never) => void }
  let all: readonly Listener[] = []

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
          ;(listener.call as (payload: Events[E]) => void)(payload)
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
