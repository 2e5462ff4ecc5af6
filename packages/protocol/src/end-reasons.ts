/** The statuses in which a call is over; each is reached exactly once. */
export const overStatuses = ['ended', 'rejected', 'cancelled', 'missed', 'busy'] as const
export type OverStatus = (typeof overStatuses)[number]

export interface EndReasonDefinition {
  /** The statuses in which a call can be over for this reason. None: the call only ends at the session that gets the notice. */
  readonly ends: readonly OverStatus[]
  readonly meaning: string
}

/**
 * Every reason for which the service ends a call, or takes its ring from a session, in one registry. A client may give a
 * reason of its own [END2].
 */
export const endReasons = {
  declined: { ends: ['rejected'], meaning: 'The callee declined, and its client gave no reason.' },
  busy: {
    ends: ['rejected', 'busy'],
    meaning:
      'Every session of the callee that was rung said that it is busy, or the product refuses invites to a callee in a call [INV5].',
  },
  all_declined: { ends: ['rejected'], meaning: 'Every member of the group at whom the call rang declined [GROUP1].' },
  refused: {
    ends: ['rejected'],
    meaning: 'The backend of the product refused the invite before it rang, and gave no reason [HOOK5].',
  },
  unavailable: {
    ends: ['rejected'],
    meaning: 'The backend of the product, which decides on its invites, gave no valid answer in time [HOOK5].',
  },
  no_answer: { ends: ['missed'], meaning: 'Nobody answered before the ring timeout.' },
  caller_cancelled: {
    ends: ['cancelled'],
    meaning: 'The caller cancelled before media was connected, or closed its client while the call rang [END6].',
  },
  caller_lost: {
    ends: ['cancelled'],
    meaning:
      "The caller's place was vacant for too long while the call rang [END3], or when the callee called back [INV6].",
  },
  hangup: { ends: ['ended'], meaning: 'One side hung up, and its client gave no reason.' },
  peer_lost: {
    ends: ['ended'],
    meaning: 'A place of the answered call was vacant for too long, or both were [END3, END5].',
  },
  max_duration: { ends: ['ended'], meaning: 'The call reached the longest duration.' },
  superseded: {
    ends: ['cancelled', 'ended'],
    meaning:
      'A new invite between the two replaced a call that its inviter had left, or that it wanted otherwise [INV7].',
  },
  transferred: {
    ends: ['ended'],
    meaning: 'One side transferred the call: the other side goes on in a new call with somebody else [XFER1].',
  },
  transfer_cancelled: {
    ends: ['cancelled'],
    meaning: 'The call that was being transferred ended before the target had answered [XFER1].',
  },
  ended_by_server: { ends: ['cancelled', 'ended'], meaning: 'The application backend ended the call [SRV2].' },
  answered_elsewhere: {
    ends: [],
    meaning: 'The call goes on: another session of the participant answered it, or has its place [PLACE2].',
  },
  taken_elsewhere: {
    ends: [],
    meaning: 'The call goes on at another session of the participant, which took it [TAKE1].',
  },
  rejected_elsewhere: { ends: [], meaning: 'Another session of the callee rejected the call.' },
  next_member: { ends: [], meaning: 'It rings at the next member of the called group [GROUP1].' },
  left_group: { ends: [], meaning: 'The participant is not a member of the called group any more [GROUP1].' },
} as const satisfies Record<string, EndReasonDefinition>

export type EndReason = keyof typeof endReasons

/** The reasons for which a call can be over with this status. */
export type EndReasonOf<S extends OverStatus> = {
  [R in EndReason]: S extends (typeof endReasons)[R]['ends'][number] ? R : never
}[EndReason]

/** The reasons for which a call no longer rings at a session. No call is over for such a reason. */
export type ElsewhereReason = Exclude<EndReason, EndReasonOf<OverStatus>>

/** The reasons that a call can be over for. */
export const endingReasons: readonly EndReason[] = Object.entries(endReasons).flatMap(([reason, { ends }]) =>
  ends.length > 0 ? [reason as EndReason] : [],
)
