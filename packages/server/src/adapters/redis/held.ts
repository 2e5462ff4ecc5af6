import { baseText, type Push } from '../../ports/push.ts'
import type { SessionIdentity, Sink, Upstream } from '../../ports/sessions.ts'
import { forgetOldest } from '../oldest.ts'
import type { Entry } from './connection.ts'

/** A session whose socket this node holds. */
export interface Held {
  /** Another one with each new token. */
  identity: SessionIdentity
  /** Names the socket in the store: another one after each resume. */
  readonly socket: string
  readonly sink: Sink
  readonly upstream: Upstream
  /** In ms since the epoch. */
  readonly openedAt: number
  epoch: string
  /** What waits may be handed over. */
  ready: boolean
  /** Its client was told who it is: what waits comes next, once it has heard of a loss that is to be told first. */
  opened: boolean
  /** Its log was lost, and it has not heard of that yet [RES4]; what it is told of it, once that is known. */
  due: { text: string | undefined } | undefined
  /** The seq that was handed over last, and the highest that was heard of. */
  delivered: number
  head: number
  reading: boolean
  /** How often something was said of its calls. */
  heard: number
  /** What is known here of its calls: with it a log begins again after a loss [RES4]. Call → whether settled. */
  readonly places: Map<string, boolean>
  readonly ringing: Set<string>
  /** Call → the last version that it was told. */
  readonly versions: Map<string, string>
  /** Call → the last version of which it was told whether the other side is there: counted apart [PEER1]. */
  readonly peerVersions: Map<string, string>
  /** Calls of whose end it was told last. */
  readonly finished: Set<string>
  /** Its client closed the socket. */
  closed: boolean
}

/** A push as the holder of a socket hears of it; a version is '' where it has none. */
export interface Heard {
  readonly seq: number
  readonly kind: string
  readonly call: string
  readonly version: string
  readonly text: string
}

export function createHeld(
  identity: SessionIdentity,
  socket: string,
  sink: Sink,
  epoch: string,
  upstream: Upstream,
  openedAt: number,
): Held {
  return {
    identity,
    socket,
    sink,
    upstream,
    openedAt,
    epoch,
    ready: false,
    opened: false,
    due: undefined,
    delivered: 0,
    head: 0,
    reading: false,
    heard: 0,
    places: new Map(),
    ringing: new Set(),
    versions: new Map(),
    peerVersions: new Map(),
    finished: new Set(),
    closed: false,
  }
}

export function newUpstream(): Upstream {
  return { handled: 0, replies: [], dropped: 0 }
}

/**
 * Hands over what is next; true where something is missing before it, or the socket is not ready: it has to be read from
 * the log then. Appends of several nodes cross, and the replies of this node's own come in another order [ORD2].
 */
export function offer(held: Held, heard: Heard): boolean {
  const { seq } = heard
  held.head = Math.max(held.head, seq)
  if (!held.ready || held.reading || seq <= held.delivered) return false
  if (seq !== held.delivered + 1) return true
  handOver(held, heard)
  return false
}

/** Hands over what was read, and what was there up to `head` counts as handed over. */
export function offerAll(held: Held, entries: readonly Entry[], head: number): void {
  for (const [id, [, kind = '', , call = '', , version = '', , , , text = '']] of entries) {
    const seq = Number.parseInt(id, 10)
    if (seq > held.delivered) handOver(held, { seq, kind, call, version, text })
  }
  held.delivered = Math.max(held.delivered, head)
}

function handOver(held: Held, { seq, kind, call, version, text }: Heard): void {
  held.delivered = seq
  // What the store says of rings beside the log may not have been heard.
  if (kind === 'ringing') held.ringing.add(call)
  else if (kind === 'final' || kind === 'stop') held.ringing.delete(call)
  held.heard++
  if (kind === 'final') finish(held, call)
  else if (kind === 'peer') held.peerVersions.set(call, version)
  else if (version !== '') held.versions.set(call, version)
  held.sink.send(render(held.identity, { seq, kind, version, text }))
  if (kind === 'ringing') held.sink.pushed(seq, call)
  else held.sink.pushed(seq)
}

/** The store remembers so many as well. */
const mostFinished = 64

/** It hears no more of a call. */
export function finish(held: Held, call: string): void {
  const { finished } = held
  forgetCall(held, call)
  finished.delete(call)
  finished.add(call)
  forgetOldest(finished, mostFinished)
}

/** A call that went on elsewhere was so long ago that nobody tells of it any more. */
export function forgetCall({ versions, peerVersions }: Held, call: string): void {
  versions.delete(call)
  peerVersions.delete(call)
}

/** A push as the session's client reads it: extended ones are numbered [EXT1]. */
function render({ extended }: SessionIdentity, { seq, kind, version, text }: Omit<Heard, 'call'>): string {
  if (!extended) return baseText({ kind, text })
  return `${text.slice(0, -1)},"seq":${seq}${version === '' ? '' : `,"version":${version}`}}`
}

/** The log begins again. */
export function loseLog(held: Held, epoch: string): void {
  held.epoch = epoch
  const { extended } = held.identity
  // The first of the new log is for what is told of the loss.
  held.delivered = extended ? 1 : 0
  held.head = held.delivered
  if (!extended) return
  held.ready = false
  held.due = { text: undefined }
}

/** Tells of the loss; false while there is nothing to say of it yet. */
export function tellReset(held: Held): boolean {
  const { due } = held
  if (due === undefined) return true
  if (due.text === undefined) return false
  held.due = undefined
  held.sink.send(render(held.identity, { seq: 1, kind: 'notice', version: '', text: due.text }))
  held.sink.pushed(1)
  return true
}

/** Rings of which it was not told before the log was lost: they are to be told again. */
export function forgetUntold({ ringing, versions }: Held): void {
  for (const call of ringing) if (!versions.has(call)) ringing.delete(call)
}

/** What the store keeps of a session's calls, as fields and values. */
export function callFields(held: Held): string[] {
  const places = [...held.places].flatMap(([call, settled]) => [`P${call}`, settled ? '1' : '0'])
  const ringing = [...held.ringing].flatMap((call) => [`R${call}`, '1'])
  const versions = [...held.versions].flatMap(([call, version]) => [`V${call}`, version])
  const peers = [...held.peerVersions].flatMap(([call, version]) => [`W${call}`, version])
  return [...places, ...ringing, ...versions, ...peers, ...[...held.finished].flatMap((call) => [`F${call}`, '1'])]
}

/** Its places and rings as the store has them: what was said of them was not heard, perhaps. */
export function learnPlaces(held: Held, fields: readonly string[]): void {
  held.places.clear()
  held.ringing.clear()
  learnCalls(held, fields)
}

export function learnCalls(held: Held, fields: readonly string[]): void {
  for (let i = 0; i < fields.length; i += 2) {
    const call = fields[i]!.slice(1)
    const value = fields[i + 1] ?? ''
    if (fields[i]!.startsWith('P')) held.places.set(call, value === '1')
    else if (fields[i]!.startsWith('V')) held.versions.set(call, value)
    else if (fields[i]!.startsWith('W')) held.peerVersions.set(call, value)
    else if (fields[i]!.startsWith('F')) held.finished.add(call)
    else held.ringing.add(call)
  }
}

/** A call as the store names it: no space, no line end. */
export const nameOf = (push: Pick<Push, 'call'>) => encodeURIComponent(push.call)
