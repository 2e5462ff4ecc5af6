import type { MessageRate } from '../config/config.ts'
import { Bucket } from './bucket.ts'

/** A message counts once for each of these that it begins. */
const unitBytes = 1024
/** A participant has this many times the rate of one socket, */
const times = 10
/** and this many times the burst: messages that are read at once keep everybody else waiting. */
const bursts = 5

/** The messages of all sockets of one participant to this node [WS7]: more sockets are not more of everything. */
export class Sender {
  readonly participant: string
  /** The budget for messages that are read. */
  private readonly messages: Bucket
  /** The budget for messages over the limits, and pings. */
  private readonly excess: Bucket
  /** How many sockets are counted here. */
  sockets = 0

  constructor(participant: string, { perSecond, burst }: MessageRate, now: number) {
    this.participant = participant
    this.messages = new Bucket({ perSecond: perSecond * times, burst: burst * bursts }, now)
    this.excess = new Bucket({ perSecond: perSecond * times, burst: burst * times }, now)
  }

  /** Whether a message may be read. */
  reads({ length }: string | Uint8Array, now: number): boolean {
    return this.messages.take(Math.max(1, Math.ceil(length / unitBytes)), now)
  }

  /** Whether that much over the limits is not too much yet. */
  bears(cost: number, now: number): boolean {
    return this.excess.take(cost, now)
  }

  /** Until a message may be read; not over 0 where it may be now. */
  waitMs(): number {
    return this.messages.waitMs()
  }

  /** As good as one that never sent anything. */
  isRested(now: number): boolean {
    return this.messages.isFull(now) && this.excess.isFull(now)
  }
}

export interface Senders {
  /** Of one socket. */
  readonly rate: MessageRate
  /** A socket of the participant sends for the first time. */
  join(participant: string, now: number): Sender
  /** A socket that joined is gone. */
  leave(sender: Sender, now: number): void
  /** Forgets who has gone; to be called now and then. */
  sweep(now: number): void
  /** How many are remembered. */
  size(): number
}

/** Who sends to this node. A participant who has gone is remembered until a new socket would have the whole rate anyway. */
export function createSenders(rate: MessageRate): Senders {
  const senders = new Map<string, Sender>()
  const gone = new Set<Sender>()

  function forgetRested(sender: Sender, now: number): void {
    if (!sender.isRested(now)) return
    gone.delete(sender)
    senders.delete(sender.participant)
  }

  return {
    rate,
    join(participant, now) {
      let sender = senders.get(participant)
      if (sender === undefined) {
        sender = new Sender(participant, rate, now)
        senders.set(participant, sender)
      }
      sender.sockets++
      gone.delete(sender)
      return sender
    },
    leave(sender, now) {
      if (--sender.sockets > 0) return
      gone.add(sender)
      forgetRested(sender, now)
    },
    sweep(now) {
      for (const sender of gone) forgetRested(sender, now)
    },
    size: () => senders.size,
  }
}
