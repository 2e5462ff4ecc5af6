/** The call of a ring ticket, on its way to a client [TICK1]. */
import type { CallStatus } from '@ringwire/protocol/rest'
import { RingwireError } from './error.ts'
import type { Call, CallClient, ConnectionState, Participant } from './types.ts'

/** The state of the ticket's call: `ringing` with its details, or what became of it. */
export type Ring =
  | {
      readonly ringing: true
      readonly callUuid: string
      readonly caller: { readonly userId: string; readonly role: string; readonly displayName: string }
      readonly callType: string
      readonly contextType: string
      readonly contextId: string
      /** When it stops ringing. */
      readonly expiresAt: Date
    }
  | NoRing

/** The call does not ring (any more). `status` is null where the ticket is over for more than a day, or its call is unknown. */
export interface NoRing {
  readonly ringing: false
  readonly status: CallStatus | null
  readonly endReason: string | null
}

/** It rings at the client, as its event `incoming` says, too. */
export interface Rung {
  readonly ringing: true
  readonly call: Call
}

/** While the call does not come, the client asks for the ticket at least this often. In ms. */
const pauseMs = 5_000
/** Rings come right after `auth.ok` [WS4]: if a call is not there after this time, the client asks about it. In ms. */
const momentMs = 1_000

type Ringing = Extract<Ring, { readonly ringing: true }>

/** The call, once it rings at the client; or what became of it, by the word of the ticket, so that no clock has to be right. */
export function ringAt(
  client: CallClient,
  callee: Participant,
  { callUuid, expiresAt }: Ringing,
  look: () => Promise<Ring>,
): Promise<Rung | NoRing> {
  return new Promise((resolve, reject) => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let isOver = false
    let tokenFailures = 0
    let failures = 0

    function finish(): void {
      isOver = true
      clearTimeout(timer)
      endIncoming()
      endState()
    }

    function become(result: Rung | NoRing): void {
      finish()
      resolve(result)
    }

    function fail(error: unknown): void {
      finish()
      reject(error)
    }

    function askIn(ms: number): void {
      clearTimeout(timer)
      if (!isOver) timer = setTimeout(ask, ms)
    }

    async function ask(): Promise<void> {
      try {
        const now = await look()
        failures = 0
        if (!now.ringing) become(now)
      } catch (error) {
        // A phone that wakes may change its network: once is not enough.
        if (++failures === 2) fail(error)
      }
      const leftMs = expiresAt.getTime() - Date.now()
      // If the clock of the device is ahead, the ring seems to be over long before it is.
      askIn(leftMs < -momentMs ? pauseMs : Math.min(Math.max(leftMs, momentMs), pauseMs))
    }

    function seek(): void {
      const call = client.find(callUuid)
      if (call?.state.name === 'ringing') become({ ringing: true, call })
    }

    function stateChanged(state: ConnectionState): void {
      const { code, message, closeCode, error } = state.why
      if (state.name === 'online') {
        tokenFailures = 0
        const { userId, role } = state.self
        if (userId === callee.userId && role === callee.role) askIn(momentMs)
        else fail(new RingwireError('CALL_NOT_PARTICIPANT', 'The ticket is that of another participant.', { callUuid }))
        return
      }
      // One that was held may be refused, and a phone that wakes may have no network yet: the next one has to be right.
      if (state.name === 'waiting' && (code === 'token_failed' || closeCode === 4401)) tokenFailures++
      if (tokenFailures === 2 || state.name === 'closed') fail(error ?? new RingwireError('CONNECTION_CLOSED', message))
    }

    const endIncoming = client.on('incoming', seek)
    const endState = client.on('state', stateChanged)
    askIn(pauseMs)
    stateChanged(client.state)
    if (!isOver) seek()
  })
}
