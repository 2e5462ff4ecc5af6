import { subprotocol } from '@ringwire/protocol/subprotocol'
import type { Environment } from './environment.ts'
import { createLiveness, type LivenessOptions } from './liveness.ts'
import type { CallClientOptions, SessionToken, WebSocketConstructor, WebSocketLike } from './types.ts'

export interface SocketUser extends Pick<LivenessOptions, 'probe'> {
  receive(text: string): void
  /** `isOwn`: an attempt of this page that was given up has taken over the session. */
  closed(code: number, reason: string, isOwn: boolean): void
  /** The service does not answer: the socket has to be left. */
  silent(): void
}

/** An attempt that was given up may still arrive within this: its bytes wait in a network that was away. */
const lateMs = 120_000
/** WebSocket.CLOSING */
const closing = 2

/** One WebSocket at a time, and whether it is alive. The user hears nothing of one that was left. */
export function createSocket(env: Environment, options: CallClientOptions, user: SocketUser) {
  const { heartbeatMs: idleMs = 25_000, heartbeatTimeoutMs: answerMs = 10_000 } = options
  const liveness = createLiveness(env, { idleMs, answerMs, probe: user.probe, onDead: user.silent })
  let socket: WebSocketLike | undefined
  let endTimer: () => void = () => {}
  /** Until then so many attempts of this page that were given up may take over the session, as another page would [RES1]. */
  let lateUntil = 0
  let late = 0

  return {
    /** Throws if this runtime does not take the URL or the token. */
    open({ ws_url, token }: SessionToken, query: string): void {
      const base = options.url ?? ws_url
      const url = `${base}${base?.includes('?') ? '&' : '?'}${query}`
      // A browser cannot set headers on a WebSocket, so the token is the second subprotocol [WS1].
      const opened = new (env.WebSocket as WebSocketConstructor)(url, [subprotocol, token])
      socket = opened
      endTimer = env.after(options.connectTimeoutMs ?? 10_000, () => {
        late++
        lateUntil = env.now() + lateMs
        user.silent()
      })
      opened.onmessage = ({ data }: { data: unknown }) => {
        if (socket !== opened) return
        liveness.heard()
        user.receive(String(data))
      }
      opened.onclose = ({ code, reason }: { code: number; reason: string }) => {
        if (socket !== opened) return
        // Once for each: a later close is about another client.
        const isOwn = code === 4409 && env.now() < lateUntil && late-- > 0
        user.closed(code, String(reason ?? ''), isOwn)
      }
      opened.onerror = () => {}
    },

    /** From now on requests go out, and each has a reply. */
    authenticated(): void {
      endTimer()
      liveness.start()
    },

    send(text: string): void {
      // One that is closing takes nothing any more, and says so in the console; what is unanswered is sent again [EXT4].
      if (socket && socket.readyState < closing) socket.send(text)
      liveness.sent()
    },

    doubt: liveness.doubt,

    leave(code: number): void {
      endTimer()
      liveness.stop()
      const left = socket
      socket = undefined
      try {
        left?.close(code)
      } catch {
        // A socket that is closed already, or an implementation that does not take the code.
      }
    },

    /** The session is over. */
    forget(): void {
      late = 0
    },
  }
}

export type Socket = ReturnType<typeof createSocket>
