import type { CallMedia } from '@ringwire/client/media'
import type { Call, CallState, Unsubscribe } from '@ringwire/client/types'
import type { DeviceChoice } from './wish.ts'

/**
 * incoming: it rings here. calling: it rings at the other side. connecting: answered, no media yet. live: media has come.
 * over: `ended` says how, until it is dismissed or another call begins.
 */
export type Phase = 'idle' | 'incoming' | 'calling' | 'connecting' | 'live' | 'over'

export type OverState = Extract<CallState, { name: 'over' }>

export interface EndedCall {
  readonly call: Call
  readonly state: OverState
  /** When it went live on this page, in ms since the epoch. Undefined for a call that never did. */
  readonly since: number | undefined
  /** In ms since the epoch. */
  readonly endedAt: number
}

/** The second call of the page: it rings during the first one, or was put on hold for it [WAIT1]. */
export interface OtherCall {
  readonly call: Call
  /** Once it was answered. */
  readonly media: CallMedia | undefined
  readonly since: number | undefined
}

/** Immutable: a change is a new object. */
export interface LineState {
  readonly phase: Phase
  readonly call: Call | undefined
  readonly media: CallMedia | undefined
  /** When the two sides were first connected on this page, in ms since the epoch. */
  readonly since: number | undefined
  readonly ended: EndedCall | undefined
  readonly other: OtherCall | undefined
  readonly devices: DeviceChoice
}

export const idle = {
  call: undefined,
  media: undefined,
  since: undefined,
  phase: 'idle',
  ended: undefined,
  other: undefined,
} as const

export function phaseOf({ state }: Call, since?: number | undefined): Phase {
  if (state.name !== 'ringing') return since === undefined ? 'connecting' : 'live'
  if (state.direction === 'outgoing') return 'calling'
  return state.answering ? 'connecting' : 'incoming'
}

/** The page's state of its call; the phase follows from the rest. */
export function createLineState() {
  let state: LineState = { ...idle, devices: {} }
  const listeners = new Set<() => void>()

  return {
    get: (): LineState => state,
    change(part: Partial<LineState>): void {
      const next = { ...state, ...part }
      state = next.call ? { ...next, phase: phaseOf(next.call, next.since) } : next
      for (const listener of [...listeners]) listener()
    },
    subscribe(listener: () => void): Unsubscribe {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

export type LineStates = ReturnType<typeof createLineState>
