// What is relayed: the same candidate through every system, so that only the envelopes differ.

/** A server-reflexive candidate over IPv6 as a browser writes it; RFC 3849 documentation addresses. */
export const candidate = {
  candidate:
    'candidate:842163049 1 udp 1685987071 2001:db8:85a3:8d3:1319:8a2e:370:7348 61665 typ srflx ' +
    'raddr 2001:db8:85a3:8d3:1319:8a2e:370:7301 rport 61665 generation 0 ufrag Yx4k network-id 1 network-cost 10',
  sdpMid: '0',
  sdpMLineIndex: 0,
  usernameFragment: 'Yx4k',
}

export const SIDES = ['caller', 'callee'] as const
export type Side = (typeof SIDES)[number]

/** Participants have names of one length, so that frames of one kind have one length too. */
export function participantId(number: number, side: Side): string {
  return `participant-${String(number).padStart(7, '0')}-${side}`
}
