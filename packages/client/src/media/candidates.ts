import { ufragOf, ufragsOf } from './description.ts'

// A description has a few dozen at most, and a peer may start ICE anew several times before its offer comes.
const mostKept = 256

/** Candidates that came before the description they belong to. */
export function createCandidateQueue() {
  let kept: RTCIceCandidateInit[] = []

  return {
    /** Whether the candidate can be given to a connection with this remote description. Else it is kept. */
    admit(candidate: RTCIceCandidateInit, remoteSdp: string | undefined): boolean {
      if (remoteSdp !== undefined) {
        const ufrag = ufragOf(candidate)
        if (ufrag === undefined || ufragsOf(remoteSdp).includes(ufrag)) return true
      }
      kept.push(candidate)
      if (kept.length > mostKept) kept.shift()
      return false
    },
    /** Those that belong to a description which has just been set, in the order in which they came. */
    take(remoteSdp: string): RTCIceCandidateInit[] {
      const ufrags = ufragsOf(remoteSdp)
      const belongs = (candidate: RTCIceCandidateInit) => {
        const ufrag = ufragOf(candidate)
        return ufrag === undefined || ufrags.includes(ufrag)
      }
      const taken = kept.filter(belongs)
      kept = kept.filter((candidate) => !belongs(candidate))
      return taken
    },
    size: () => kept.length,
  }
}

export type CandidateQueue = ReturnType<typeof createCandidateQueue>
