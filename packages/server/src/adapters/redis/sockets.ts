import type { Sink } from '../../ports/sessions.ts'
import { StoreError } from '../../ports/store-error.ts'
import { forgetOldest } from '../oldest.ts'
import type { Channel, Request } from './channel.ts'
import type { Held } from './held.ts'
import type { Holder, LastSocket } from './holder.ts'

/** Whichever socket a node holds of a session. */
export const anySocket = '*'

/** Objects for sockets of other nodes that are kept. */
const mostRemotes = 1_000

export interface SocketsOptions {
  readonly node: string
  readonly channel: Channel
  /** The socket of a session is gone with the node that held it. */
  readonly leaveFor: (sessionId: string, socket: string) => Promise<void>
  readonly onError: (error: unknown) => void
}

/** The sockets of sessions, wherever they are. */
export interface Sockets {
  /** Undefined where there is nothing to wait for any more. */
  at(holder: string, sessionId: string, socket: string): Sink | undefined
}

export function createSockets({ held, last }: Holder, options: SocketsOptions): Sockets {
  const { node, channel, leaveFor, onError } = options
  const remotes = new Map<string, Sink>()

  function at(holder: string, id: string, socket: string): Sink | undefined {
    if (socket === '') return undefined
    if (holder !== node) return remote(holder, id, socket)
    const here = held.get(id)
    if (here?.socket === socket) return here.sink
    const before = last.get(id)
    // One that is quiet has nothing to wait for.
    return before?.socket === socket && before.sink.isBusy ? before.sink : undefined
  }

  /** A socket that another node holds; the same object for the same socket. */
  function remote(holder: string, id: string, socket: string): Sink {
    const key = socket === anySocket ? `${holder} ${id}` : socket
    const known = remotes.get(key)
    if (known !== undefined) return known
    const sink: Sink = {
      send: () => {},
      pushed: () => {},
      writtenSeq: 0,
      // Only its node knows.
      isBusy: true,
      isClosed: false,
      // Where the node is alive and busy, the holder counts as there: a held place is never taken [PLACE3].
      async probe() {
        const answer = await channel.ask(holder, 'probe', id, socket)
        const isDead = answer === 'gone' || (answer === undefined && !channel.isAlive(holder))
        if (isDead) await leaveFor(id, socket)
        return !isDead && answer !== '0'
      },
      close: (code, reason) => void channel.ask(holder, 'close', id, socket, `${code} ${reason}`).catch(onError),
      async retire() {
        const answer = await channel.ask(holder, 'retire', id, socket)
        if (answer !== undefined || !channel.isAlive(holder)) return
        throw new StoreError('unavailable', 'the node that holds the socket does not answer')
      },
    }
    remotes.set(key, sink)
    forgetOldest(remotes, mostRemotes)
    return sink
  }

  return { at }
}

/** Another node asks about a socket of this one; `retired` is called for one that is. */
export async function answer(
  { held, last }: Holder,
  op: Request,
  sessionId: string,
  socket: string,
  rest: string,
  retired: (here: LastSocket | Held) => Promise<void>,
): Promise<string> {
  const here =
    socket === anySocket
      ? held.get(sessionId)
      : [held.get(sessionId), last.get(sessionId)].find((each) => each?.socket === socket)
  if (here === undefined) return '0'
  if (op === 'probe') return (await here.sink.probe()) ? '1' : '0'
  if (op === 'close') {
    const [code, ...reason] = rest.split(' ')
    here.sink.close(Number(code) as Parameters<Sink['close']>[0], reason.join(' '))
    return '1'
  }
  await here.sink.retire()
  await retired(here)
  return '1'
}
