// The parts of descriptions and candidates that the SDK reads. Only the role in a later offer is ever changed.

const lines = (sdp: string, prefix: string): string[] =>
  sdp
    .split(/\r?\n/)
    .filter((line) => line.startsWith(prefix))
    .map((line) => line.slice(prefix.length).trim())

/**
 * Who speaks: the fingerprint of the DTLS certificate (RFC 8122 section 5) as "sha-256 AB:CD:…", empty where there is none.
 * An RTCPeerConnection keeps its certificate for life, so another fingerprint is another RTCPeerConnection: the peer's page
 * was loaded again, or it began anew. Throws where there are several different ones, because a browser takes a certificate
 * that fits any of them [SAS1].
 */
export function fingerprintOf(sdp: string): string {
  // The rest of the line counts, whatever it is: what a browser reads in it may differ from what is read here.
  const found = sdp.matchAll(/^a=fingerprint:[ \t]*(\S*)[ \t]*(.*?)[ \t]*$/gim)
  const all = new Set(Array.from(found, ([, algorithm = '', hash = '']) => fingerprint(algorithm, hash)))
  if (all.size > 1) throw new Error('A description has several fingerprints')
  return [...all].join('')
}

const fingerprint = (algorithm: string, hash: string) => `${algorithm.toLowerCase()} ${hash.toUpperCase()}`

/** The ICE credentials' names: a candidate belongs to the description that has its own (RFC 8839 section 5.4). */
export function ufragsOf(sdp: string): readonly string[] {
  return lines(sdp, 'a=ice-ufrag:')
}

/** Session id and version: together they name one offer (RFC 8829 section 5.2.1). */
export function originOf(sdp: string): string {
  const [, id = '', version = ''] = (lines(sdp, 'o=')[0] ?? '').split(' ')
  return `${id} ${version}`
}

/** Undefined where the candidate does not say. */
export function ufragOf(candidate: RTCIceCandidateInit): string | undefined {
  return candidate.usernameFragment ?? / ufrag (\S+)/.exec(candidate.candidate ?? '')?.[1]
}

/**
 * An answer of ours names its offer, so that one that was kept for a page which is gone, or that crossed a newer offer,
 * is not taken for the answer to another. A client that does not know the field ignores it.
 */
export interface NamedAnswer {
  readonly type: 'answer'
  readonly sdp: string
  readonly answers?: string
}

export function isAnswerTo(answer: NamedAnswer, offerSdp: string): boolean {
  return answer.answers === undefined || answer.answers === originOf(offerSdp)
}

const roleIn = (description: RTCSessionDescription | null | undefined) => lines(description?.sdp ?? '', 'a=setup:')[0]

/**
 * An offer on a connection that has its DTLS names the role that this side has there, as RFC 8842 section 5.2 allows. Asked
 * again by `actpass`, Firefox answers a restart of ICE with `active` although it is passive, and nobody can take that answer.
 */
export function withRole(
  sdp: string,
  {
    currentLocalDescription,
    currentRemoteDescription,
  }: Pick<RTCPeerConnection, 'currentLocalDescription' | 'currentRemoteDescription'>,
): string {
  const mine = roleIn(currentLocalDescription)
  const theirs = roleIn(currentRemoteDescription)
  const isPassive = mine === 'passive' || theirs === 'active'
  const role = mine === 'active' || theirs === 'passive' ? 'active' : isPassive ? 'passive' : 'actpass'
  return sdp.replace(/(a=setup:)actpass/g, `$1${role}`)
}
