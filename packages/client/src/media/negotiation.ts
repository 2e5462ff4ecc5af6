import { createCandidateQueue } from './candidates.ts'
import { fingerprintOf, isAnswerTo, type NamedAnswer, originOf, withRole } from './description.ts'

import type { Senders } from './senders.ts'

export interface NegotiationOptions {
  /** A new RTCPeerConnection with the configuration of now. The old one, if any, is closed. */
  open(): RTCPeerConnection
  /** Of two offers that cross, the polite side's gives way. It may change with glare of invites, so this is a function. */
  isPolite(): boolean
  /** `equip` before the first offer on a connection: what it shall carry. `attach` between the peer's offer and its answer. */
  senders: Pick<Senders, 'equip' | 'attach'>
  /** An offer and its answer are through. */
  settled(connection: RTCPeerConnection): void
  sendOffer(sdp: { type: 'offer'; sdp: string }): void
  sendAnswer(sdp: NamedAnswer & { answers: string }): void
  sendCandidate(candidate: RTCIceCandidateInit): void
  failed(error: unknown): void
}

interface Link {
  readonly connection: RTCPeerConnection
  /** The fingerprint of the peer's connection, empty until a description of it came. */
  peer: string
  /** The description is not sent yet: its candidates wait. */
  describing: boolean
  readonly gathered: RTCIceCandidate[]
}

/** What an offer is for. */
export interface OfferOptions {
  /** New ICE credentials. Without it, and without `fresh`: what changed on this connection. */
  restart?: boolean
  /** A new connection. */
  fresh?: boolean
  /** The offer is made at once, and sent when this says so. A side that says no has no use for the offer. */
  mayBeSent?: Promise<boolean>
}

/** Where a negotiation stands. */
interface Talk {
  readonly options: NegotiationOptions
  readonly queue: ReturnType<typeof createCandidateQueue>
  link?: Link | undefined
  closed: boolean
  /** The steps so far. */
  steps: Promise<void>
}

/**
 * Perfect negotiation (webrtc-pc section 10.7) over connections that may be replaced. One RTCPeerConnection of ours
 * talks to one of the peer's. If the other end is a new one (a page that was loaded again, a client that makes a new
 * connection for each offer), ours is replaced too, so that DTLS and ICE never mix two pasts.
 *
 * Every step waits for the one before it, so a state that a step sees is the state of that moment.
 */
export function createNegotiation(options: NegotiationOptions) {
  const talk: Talk = { options, queue: createCandidateQueue(), closed: false, steps: Promise.resolve() }

  return {
    connection: (): RTCPeerConnection | undefined => talk.link?.connection,
    /** Opens the connection before there is anything to say: its certificate and its candidates take their time. */
    prepare: (): Promise<void> =>
      inTurn(talk, async () => {
        if (!talk.link) open(talk)
      }),
    offer: (how: OfferOptions): Promise<void> => inTurn(talk, () => offer(talk, how)),
    receiveOffer: (sdp: Sdp): Promise<void> => inTurn(talk, () => receiveOffer(talk, sdp)),
    receiveAnswer: (answer: NamedAnswer): Promise<void> => inTurn(talk, () => receiveAnswer(talk, answer)),
    receiveCandidate: (candidate: RTCIceCandidateInit): Promise<void> =>
      inTurn(talk, async () => {
        const { link, queue } = talk
        if (!queue.admit(candidate, link?.connection.remoteDescription?.sdp)) return
        await link?.connection.addIceCandidate(candidate).catch(() => {})
      }),
    close(): void {
      talk.closed = true
      talk.link?.connection.close()
    },
  }
}

export type Negotiation = ReturnType<typeof createNegotiation>

type Sdp = { readonly type: 'offer' | 'answer'; readonly sdp: string }

function inTurn(talk: Talk, step: () => Promise<void>): Promise<void> {
  talk.steps = talk.steps
    .then(() => (talk.closed ? undefined : step()))
    .catch((error: unknown) => {
      if (!talk.closed) talk.options.failed(error)
    })
  return talk.steps
}

function open(talk: Talk): Link {
  const { options } = talk
  talk.link?.connection.close()
  const connection = options.open()
  const opened: Link = { connection, peer: '', describing: false, gathered: [] }
  connection.addEventListener('icecandidate', ({ candidate }) => {
    // The empty one marks the end of candidates, which nobody has to know.
    if (!candidate?.candidate || talk.link !== opened) return
    if (opened.describing) opened.gathered.push(candidate)
    else options.sendCandidate(candidate.toJSON())
  })
  connection.addEventListener('negotiationneeded', () => {
    // The first offer has its own time; later ones come from tracks that were added.
    if (opened.peer !== '' && talk.link === opened) void inTurn(talk, () => offer(talk, {}))
  })
  talk.link = opened
  return opened
}

/** A connection on which nothing was said yet, or none. */
function unused({ link }: Talk): Link | undefined {
  return link?.peer === '' && link.connection.signalingState === 'stable' ? link : undefined
}

/** Makes an offer, or the answer to the peer's, and sends it before its candidates. */
async function describe(talk: Talk, on: Link, mayBeSent?: Promise<boolean>): Promise<void> {
  const { options } = talk
  const { connection } = on
  on.describing = true
  await connection.setLocalDescription()
  if (mayBeSent && !(await mayBeSent)) {
    connection.close()
    talk.link = undefined
    return
  }
  const { type, sdp } = connection.localDescription ?? {}
  if (sdp !== undefined && type === 'offer') options.sendOffer({ type, sdp: withRole(sdp, connection) })
  else if (sdp !== undefined && type === 'answer') {
    const answers = originOf(connection.remoteDescription?.sdp ?? '')
    options.sendAnswer({ type, sdp, answers })
  }
  on.describing = false
  for (const candidate of on.gathered.splice(0)) options.sendCandidate(candidate.toJSON())
}

async function offerAnew(talk: Talk, mayBeSent?: Promise<boolean>): Promise<void> {
  const fresh = unused(talk) ?? open(talk)
  talk.options.senders.equip(fresh.connection)
  await describe(talk, fresh, mayBeSent)
}

async function offer(talk: Talk, { restart = false, fresh = false, mayBeSent }: OfferOptions): Promise<void> {
  const { link } = talk
  if (!link || fresh || unused(talk)) return offerAnew(talk, mayBeSent)
  const { signalingState } = link.connection
  if (restart) link.connection.restartIce()
  // A connection that waits for an answer gets no new offer, unless that answer may never come.
  else if (signalingState !== 'stable') return
  await describe(talk, link)
}

async function take(on: Link, { type, sdp }: Sdp): Promise<void> {
  await on.connection.setRemoteDescription({ type, sdp })
  on.peer = fingerprintOf(sdp)
}

/** The candidates that waited for this description. */
async function settle({ queue, options }: Talk, { connection }: Link, sdp: string): Promise<void> {
  const waiting = queue.take(sdp).map((candidate) => connection.addIceCandidate(candidate))
  // A candidate of a description that was given up may fail; that is no failure of the call.
  await Promise.allSettled(waiting)
  options.settled(connection)
}

async function receiveOffer(talk: Talk, offered: Sdp): Promise<void> {
  const { link, options } = talk
  const peer = fingerprintOf(offered.sdp)
  const waiting = link && link.connection.signalingState !== 'stable' ? link : undefined
  if (waiting && !options.isPolite()) return crossed(talk, waiting, peer)
  // If it crosses an offer of ours to the same peer, taking it rolls ours back.
  const on = link && link.peer !== '' && link.peer === peer ? link : (unused(talk) ?? open(talk))
  await take(on, offered)
  options.senders.attach(on.connection)
  await describe(talk, on)
  await settle(talk, on, offered.sdp)
}

async function crossed(talk: Talk, waiting: Link, peer: string): Promise<void> {
  // Plain glare: the peer gives way and answers ours.
  if (waiting.peer === peer) return
  // Perhaps the peer's page was loaded again and never saw our offer. The offer is made once more, for the page that is
  // there now.
  if (waiting.peer === '') await describe(talk, waiting)
  else await offerAnew(talk)
}

async function receiveAnswer(talk: Talk, answer: NamedAnswer): Promise<void> {
  const { link } = talk
  const peer = fingerprintOf(answer.sdp)
  if (!link) return
  const isStranger = link.peer !== '' && link.peer !== peer
  const isWaiting = link.connection.signalingState === 'have-local-offer'
  if (isWaiting && isAnswerTo(answer, link.connection.localDescription?.sdp ?? '')) {
    // The peer made a new connection for an offer of our old one.
    if (isStranger) return offerAnew(talk)
    await take(link, answer)
    await settle(talk, link, answer.sdp)
  } else if (isStranger && answer.answers !== undefined) {
    // An old offer of ours came to a new page of the peer, which now believes in a connection that is gone.
    return offerAnew(talk)
  }
}
