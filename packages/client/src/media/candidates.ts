import { ufragOf, ufragsOf } from './description.ts'

// A description has a few dozen at most, and a peer may start ICE anew several times before its offer comes.
const mostKept = 256

/** A candidate that names no description belongs to any. */
function belongs(candidate: RTCIceCandidateInit, remoteSdp: string): boolean {
  const ufrag = ufragOf(candidate)
  return ufrag === undefined || ufragsOf(remoteSdp).includes(ufrag)
}

/** Candidates that came before the description they belong to. */
export function createCandidateQueue() {
  let kept: RTCIceCandidateInit[] = []

  return {
    /** Whether the candidate can be given to a connection with this remote description. Else it is kept. */
    admit(candidate: RTCIceCandidateInit, remoteSdp: string | undefined): boolean {
      if (remoteSdp !== undefined && belongs(candidate, remoteSdp)) return true
      kept = [...kept, candidate].slice(-mostKept)
      return false
    },
    /** Those that belong to a description which has just been set, in the order in which they came. */
    take(remoteSdp: string): RTCIceCandidateInit[] {
      const taken = kept.filter((candidate) => belongs(candidate, remoteSdp))
      kept = kept.filter((candidate) => !taken.includes(candidate))
      return taken
    },
  }
}

export type CandidateQueue = ReturnType<typeof createCandidateQueue>
