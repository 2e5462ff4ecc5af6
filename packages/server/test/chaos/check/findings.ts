/** What can be wrong, each kind in words. docs/reliability.md has the rules. */
export const kinds = {
  gap: 'a seq is missing, and no loss was declared',
  double: 'the same push, relay or reply came twice to one session',
  order: 'something came before what it follows',
  reply: 'a request has no reply though its session went on',
  resume: 'a session was not recovered, and nothing had happened that explains it',
  protocol: 'a frame that no rule allows',
  versions: 'a version of a call is missing in the database, or there twice',
  terminal: 'a call has no end, or more than one',
  effect: 'a transition that nobody asked for, or that was refused',
  acknowledged: 'a transition that was acknowledged is not in the database',
  disagrees: 'somebody was told what is not so',
  untold: 'somebody was never told how a call ended',
  refusal: 'a request was refused without a reason',
  lost: 'a relay that was acknowledged never came',
  transfer: 'two calls of a transfer do not agree',
  group: 'a call to a group and what its members did do not agree',
  taken: 'a place that was taken is not where it should be',
  history: 'the history of a participant does not agree with the database',
  hook: 'a webhook did not come, came out of order, or under two ids',
  crash: 'a node ended by itself',
  bug: 'a node failed at something that is no fault of a store',
  stuck: 'something did not come to an end',
} as const
export type Kind = keyof typeof kinds

export interface Violation {
  readonly kind: Kind
  readonly text: string
  readonly user?: string
  readonly call?: string
  /** In ms since the recording's start. */
  readonly at?: number
}

export type Report = (
  kind: Kind,
  text: string,
  where?: { user?: string; call?: string | undefined; at?: number },
) => void

/** Clocks of service and phones are the machine's; they are read one after another. In ms. */
export const clockSlackMs = 250

/** A session of which one key is deleted finds out when all are looked after: every minute. In ms. */
export const evictionShowsMs = 60_000
