import type { Capability } from '@ringwire/protocol/capabilities'

/**
 * One push on its way to a session. `ringing` starts a ring there; `stop` ends it while the call goes on elsewhere;
 * `state` is the call's state for the place's holder; `relay` is a peer's message; `final` says how the call ended;
 * `notice` is only for extended sessions. `media` is a relay that says which media a peer sends, only to extended
 * sessions: the last one of each call is repeated to the session that gets the place, by `move` or by `resume` [MEDIA1].
 * `peer` tells an extended session of the other side's absence: its version is counted apart, for it goes beside what
 * else a version tells [PEER1]. `version` is the version of the call, and undefined for relays and notices that are not
 * about a version.
 */
export interface Push {
  readonly kind: 'ringing' | 'stop' | 'state' | 'relay' | 'media' | 'final' | 'notice' | 'peer'
  readonly call: string
  readonly version: number | undefined
  readonly text: string
  /**
   * The request behind a relay [EXT4]; of a base session, which sends nothing again, under a number of its socket. A session
   * that outlives the process which handles the request takes it once, however often it is sent again.
   */
  readonly source?: PushSource | undefined
  /** Which parcel brought it from a session that had the place before, the first one of several [PLACE2]. */
  readonly parcel?: string
  /** Of a `stop`: the device that answered. Other sessions of that device do not hear so when they come later [WS4]. */
  readonly device?: string
  /** A session whose client did not list this skips the push [EXT6]. */
  readonly needs?: Capability
  /**
   * Another node, or a step of the call, brings this relay again until it is saved. No extended client gets it before
   * that, also while the store is away: a client that goes on elsewhere would get it twice [EXT3].
   */
  readonly saveFirst?: true
  /** A relay for the holder of the place: `elsewhere` if the session does not have it. Ignored where one process serves. */
  readonly forPlace?: boolean
}

/**
 * `sent`: in the log and handed to the socket. `kept`: in the log of a session whose socket is gone. `full`: the log of
 * such a session holds no more [REL2]. `dropped`: the push is not news, or it never rang there. `elsewhere`: a relay for
 * a place that the session does not have, or for a call whose end it knows: the sender's process knew an old state of the
 * call. `gone`: there is no such session; append never creates one. `volatile`: in the log and handed to the socket, and
 * not saved, because the store is away [EXT3]. `late`: a request that was refused, and that comes again after later ones
 * of its session were taken [EXT4]. `early`: the one that it comes after was not taken there.
 */
export type AppendResult = 'sent' | 'kept' | 'full' | 'dropped' | 'elsewhere' | 'gone' | 'volatile' | 'late' | 'early'

export interface PushSource {
  readonly sessionId: string
  readonly n: number
  /** The relay of the same sender that was still on its way when this one was sent: this one is only taken after it [ORD1]. */
  readonly after?: number | undefined
}

/** The last that a session hears of a call, unless it takes a place in it after all: kept until the client comes back [WS4]. */
export function isLast({ kind }: Pick<Push, 'kind'>): boolean {
  return kind === 'final' || kind === 'stop'
}

/** What one peer sends another [REL1]. */
export function isRelay({ kind }: Pick<Push, 'kind'>): boolean {
  return kind === 'relay' || kind === 'media'
}

type RelayedEvent = 'webrtc.offer' | 'webrtc.answer' | 'webrtc.ice_candidate'

/** Whether a push is this message of the peer: the text of a relay begins with its event. */
export function isRelayOf({ kind, text }: Pick<Push, 'kind' | 'text'>, event: RelayedEvent): boolean {
  return kind === 'relay' && text.startsWith(event, eventAt)
}

const eventAt = '{"event":"'.length

/** A push as a base session reads it: only with the fields of the interface. */
export function baseText({ kind, text }: Pick<Push, 'text'> & { readonly kind: string }): string {
  const isMore =
    kind === 'state'
      ? text.includes('"display_name"') || text.includes('"callee_user_id"')
      : kind === 'ringing' && text.includes('"transferred_by"')
  if (!isMore) return text
  const { event, data } = JSON.parse(text)
  const { transferred_from: _, transferred_by: __, ...known } = data
  if (kind === 'state') {
    delete known.display_name
    delete known.callee_user_id
  }
  return JSON.stringify({ event, data: known })
}
