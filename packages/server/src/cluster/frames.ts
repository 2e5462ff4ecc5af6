import type { Push } from '../ports/push.ts'
import type { SessionIdentity } from '../ports/sessions.ts'
import type { Operation } from './operations.ts'

/** A relay for a session that has a place, under the number of its request; answers as `do` [EXT4]. */
export type RelayFrame = readonly [
  name: 'relay',
  text: string,
  sessionId: string,
  kind: 'relay' | 'media',
  call: string,
  sender: string,
  n: number,
  after: number | null,
]

/** The requests and news that one node sends another. */
export type Frame =
  | RelayFrame
  /** Something to do with a session that it owns; answers `notHere` where it does not. */
  | readonly ['do', operation: Operation, sessionId: string, args: readonly unknown[]]
  /** A place passes from one session to another, both of which it owns. */
  | readonly [
      name: 'move',
      call: string,
      from: string,
      to: string,
      settled: boolean,
      version: number,
      gate: boolean,
      isLost?: boolean,
      isTaken?: boolean,
    ]
  /** To each session of a participant where a call rings; answers those of the named ones that it does not own. */
  | readonly [
      'rung',
      participant: SessionIdentity['participant'],
      push: Push,
      except: readonly string[],
      sessionIds: readonly string[],
    ]
  | readonly ['owing' | 'collect', identity: SessionIdentity]
  /**
   * Lets go of a session that was found in the directory with this stamp: for its client, which came back elsewhere, in its
   * turn (0: it has none yet), with the last push that it saw, or, where none is named, if it has no socket.
   */
  | readonly [
      'yield',
      sessionId: string,
      stamp: string,
      identity: SessionIdentity | null,
      turn: number,
      seq?: number | undefined,
    ]
  | readonly ['probe' | 'retire', sessionId: string]
  /** Whether a session is that node's, of which the directory has no row: it writes one, then. */
  | readonly ['find', sessionId: string]
  | readonly ['close', sessionId: string, code: number, reason: string]
  /** What was just committed to a call, under the mark of its shape. */
  | readonly ['call', mark: string, call: unknown]
  /** The steps of a call up to this version have reached everybody. */
  | readonly ['told', call: string, version: number]
  /** How a call ended waits in a dead session, and another one of its device is this node's [WS4]. */
  | readonly ['inherit', from: string, to: string, call: string]
  /** The store may have been emptied. */
  | readonly ['look']
  /** It was taken for dead, and something that it owned was taken over. */
  | readonly ['taken']
  | readonly ['heard']

/** The session is not this node's, or not any more. */
export const notHere = 'not here'

export function isRelayFrame(frame: Frame): frame is RelayFrame {
  return frame[0] === 'relay'
}

/** Undefined if the push is not a relay or a media state with a number of its sender. */
export function relayFrame(sessionId: string, push: Push): RelayFrame | undefined {
  const { kind, text, call, source, forPlace } = push
  if ((kind !== 'relay' && kind !== 'media') || source === undefined || forPlace !== true) return undefined
  return ['relay', text, sessionId, kind, call, source.sessionId, source.n, source.after ?? null]
}

/** The asking node hears nothing before the relay is saved, and asks again if it was not. */
export function pushIn([, text, , kind, call, sessionId, n, after]: RelayFrame): Push {
  const source = { sessionId, n, after: after ?? undefined }
  return { kind, call, version: undefined, text, source, forPlace: true, saveFirst: true }
}
