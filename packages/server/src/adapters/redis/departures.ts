import { StoreError } from '../../ports/store-error.ts'
import type { Held } from './held.ts'
import type { Holder, HolderOptions } from './holder.ts'

/** A socket that is gone. */
export interface Departure {
  readonly sessionId: string
  readonly socket: string
  /** Its client closed it for good (`1`), closed it and may come back (`2`), or was lost. */
  readonly clean: '0' | '1' | '2'
  readonly at: number
  /** Up to where the socket was sent the log of this epoch. */
  readonly sent: number
  readonly epoch: string
  /** Of a socket that this node held: what its client asked for is known here alone [EXT4]. */
  readonly session?: Held | undefined
}

export type DeparturesOptions = Pick<HolderOptions, 'run' | 'now' | 'onError'>

/** Sockets that are gone, and what the store knows of that. */
export interface Departures {
  /** Of a socket that this node held. False where the session has another; what the store cannot be told now it is told later. */
  leave(departure: Departure): Promise<boolean>
  /** The socket of a session is gone with the node that held it. */
  leaveFor(sessionId: string, socket: string): Promise<void>
  /** For an open or a resume that fails: nobody will have the socket that the store may have been told of. */
  mayHaveSocket(sessionId: string, socket: string, clean: '0' | '1'): (error: unknown) => never
  /** What the store was not told while it was away. */
  tellLeft(): Promise<void>
}

export function createDepartures({ hearAll, restore }: Holder, { run, now, onError }: DeparturesOptions): Departures {
  /** Sockets that are gone, of which the store does not know yet, by their names. */
  const left = new Map<string, Departure>()

  async function detach(departure: Departure): Promise<boolean> {
    const { sessionId, session } = departure
    const [result = 0, ...messages] = (await run('detach', sessionId, argsOf(departure))) ?? []
    hearAll(messages)
    if (result !== -1) return result !== 0
    // The store lost the session with its log. Whoever comes back is told once how its calls ended, and waits for what was
    // asked on this socket [EXT4, WS4]: a missing record says neither.
    if (session === undefined) return true
    await restore(session)
    return detach(departure)
  }

  const lost = (sessionId: string, socket: string, clean: Departure['clean']): Departure => {
    return { sessionId, socket, clean, at: now(), sent: 0, epoch: '' }
  }

  return {
    async leave(departure) {
      try {
        return await detach(departure)
      } catch (error) {
        if (!(error instanceof StoreError)) throw error
        left.set(departure.socket, departure)
        return true
      }
    },
    async leaveFor(id, socket) {
      await detach(lost(id, socket, '0'))
    },
    mayHaveSocket: (id, socket, clean) => (error) => {
      if (error instanceof StoreError && error.kind === 'unknown') left.set(socket, lost(id, socket, clean))
      throw error
    },
    async tellLeft() {
      const all = [...left]
      let failure: unknown
      for (let i = 0; i < all.length; i += 100) {
        await Promise.all(
          all.slice(i, i + 100).map(async ([socket, departure]) => {
            try {
              await detach(departure)
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

/** What `detach` takes. What was asked is read when it is told: requests that were under way take effect after the end. */
function argsOf({ sessionId, socket, clean, at, sent, epoch, session }: Departure): (string | number)[] {
  const upstream = session?.upstream
  const asked = upstream === undefined ? ['', 0] : [JSON.stringify(upstream), upstream.dropped]
  return [sessionId, socket, clean, at, ...asked, sent, epoch]
}
