import { StoreError } from '../../ports/store-error.ts'
import type { Held } from './held.ts'
import type { Holder, HolderOptions } from './holder.ts'

/**
 * What `detach` takes; `upstream` is what the client asked for [EXT4], or '' where nothing is known of that here. `sent`: up
 * to where the socket was sent the log of this epoch.
 */
export type Departure = readonly [
  sessionId: string,
  socket: string,
  clean: '0' | '1' | '2',
  at: number,
  upstream: string,
  dropped: number,
  sent: number,
  epoch: string,
]

export type DeparturesOptions = Pick<HolderOptions, 'run' | 'now' | 'onError'>

/** Sockets that are gone, and what the store knows of that. */
export interface Departures {
  /** Of a socket that this node held. False where the session has another; what the store cannot be told now it is told later. */
  leave(departure: Departure, session: Held): Promise<boolean>
  /** The socket of a session is gone with the node that held it. */
  leaveFor(sessionId: string, socket: string): Promise<void>
  /** For an open or a resume that fails: nobody will have the socket that the store may have been told of. */
  mayHaveSocket(sessionId: string, socket: string, clean: '0' | '1'): (error: unknown) => never
  /** What the store was not told while it was away. */
  tellLeft(): Promise<void>
}

export function createDepartures({ hearAll, restore }: Holder, { run, now, onError }: DeparturesOptions): Departures {
  /** Sockets that are gone, of which the store does not know yet. */
  const left = new Map<string, { readonly departure: Departure; readonly session?: Held }>()

  async function detach(departure: Departure, session?: Held): Promise<boolean> {
    const [result = 0, ...messages] = (await run('detach', departure[0], departure)) ?? []
    hearAll(messages)
    if (result !== -1) return result !== 0
    // The store lost the session with its log. Whoever comes back is told once how its calls ended, and waits for what was
    // asked on this socket [EXT4, WS4]: a missing record says neither.
    if (session === undefined) return true
    await restore(session)
    return detach(departure)
  }

  return {
    async leave(departure, session) {
      try {
        return await detach(departure, session)
      } catch (error) {
        if (!(error instanceof StoreError)) throw error
        left.set(departure[1], { departure, session })
        return true
      }
    },
    async leaveFor(id, socket) {
      await detach([id, socket, '0', now(), '', 0, 0, ''])
    },
    mayHaveSocket: (id, socket, clean) => (error) => {
      if (error instanceof StoreError && error.kind === 'unknown')
        left.set(socket, { departure: [id, socket, clean, now(), '', 0, 0, ''] })
      throw error
    },
    async tellLeft() {
      const all = [...left]
      let failure: unknown
      for (let i = 0; i < all.length; i += 100) {
        await Promise.all(
          all.slice(i, i + 100).map(async ([socket, { departure, session }]) => {
            try {
              await detach(departure, session)
              left.delete(socket)
            } catch (error) {
              // Its part of the store is away; others may be there.
              if (!(error instanceof StoreError)) left.delete(socket)
              failure ??= error
            }
          }),
        )
      }
      if (failure !== undefined) onError(failure)
    },
  }
}
