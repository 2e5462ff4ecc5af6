/** A node with fewer sockets closes none: what it could gain is less than what a reconnect costs. */
export const fewSockets = 30
/** A node is within its share up to this multiple of it. */
const tolerance = 1.1
/** The part of its surplus that a node closes in a second: it hears of what that changes two seconds late. */
const gain = 0.1
/** The closes after which a node looks whether they helped; it looks sooner if it has fewer sockets, but not within `trialMs`. */
const trialCloses = 100
const trialMs = 10_000
/** How long a node closes none after closes that did not help, in ms. */
export const restMs = 600_000

/** What a node knows of the sockets at one moment. */
export interface Loads {
  readonly own: number
  /** Of each other node that takes clients. */
  readonly others: readonly number[]
  /** Monotonic, ms. */
  readonly now: number
}

export interface Balance {
  /** How many sockets to close in this second. */
  surplus(loads: Loads): number
  /** Takes note of closes. */
  closed(count: number): void
  /** Whether the last closes did not help, so that it closes none for a while. */
  isResting(now: number): boolean
}

/** Closes, and how things were before the first of them: the share of each node, and the room of the others below it. */
interface Trial {
  readonly at: number
  readonly others: number
  readonly share: number
  readonly room: number
  closes: number
}

/** How many sockets these nodes are short of a share. */
const roomOf = (others: readonly number[], share: number) =>
  others.reduce((sum, each) => sum + Math.max(0, share - each), 0)

/**
 * Decides how many of its sockets a node closes so that their clients go to nodes with fewer ones [BAL1].
 *
 * A load balancer may send clients back to the same node, or to others that are as full, for ever. So the room that other nodes
 * have below their share has to shrink by at least a quarter of what an even spread would give. If it does not, the node rests.
 * Room that comes by itself is nobody's failure: the room of clients that connect meanwhile, and of a node that starts.
 */
export function createBalance(perSecond: number): Balance {
  let trial: Trial | undefined
  let restsUntil = Number.NEGATIVE_INFINITY

  /** Whether the closes of the trial have filled other nodes. New clients raise the share; they do not raise what it began with. */
  function helped({ share, room, closes }: Trial, others: readonly number[], shareNow: number): boolean {
    return room - roomOf(others, Math.min(share, shareNow)) >= closes / (4 * (others.length + 1))
  }

  /** Whether the closes until now can be judged. */
  const isOver = ({ closes, at }: Trial, own: number, now: number) =>
    closes >= Math.min(trialCloses, own) && now - at >= trialMs
  /** It has closed nothing yet, it is old, or there are other nodes than at its begin. */
  const isVoid = ({ closes, at, others }: Trial, { length }: readonly number[], now: number) =>
    closes === 0 || now - at > restMs || others !== length

  return {
    surplus({ own, others, now }) {
      if (others.length === 0 || now < restsUntil) return 0
      const share = others.reduce((sum, each) => sum + each, own) / (others.length + 1)
      if (own < fewSockets || own <= share * tolerance) return 0
      if (trial !== undefined && isVoid(trial, others, now)) trial = undefined
      if (trial !== undefined && isOver(trial, own, now)) {
        if (!helped(trial, others, share)) restsUntil = now + restMs
        trial = undefined
        if (now < restsUntil) return 0
      }
      trial ??= { at: now, others: others.length, share, room: roomOf(others, share), closes: 0 }
      return Math.min(perSecond, Math.ceil((own - share) * gain))
    },
    closed(count) {
      if (trial !== undefined) trial.closes += count
    },
    isResting: (now) => now < restsUntil,
  }
}
