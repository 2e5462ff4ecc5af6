/** Bounds of groups; times are in ms [GROUP1]. */
export const groupLimits = {
  members: 500,
  memberRingMs: { min: 5_000, default: 15_000, max: 60_000 },
  ringMs: { min: 5_000, default: 45_000, max: 600_000 },
  /** Of the body of a PUT, in bytes: 500 of the longest user_ids fit. */
  bodyBytes: 160 * 1024,
} as const

/** How a group rings: every member at once, or one after another. */
export const groupStrategies = ['all', 'in_turn', 'longest_idle'] as const
export type GroupStrategy = (typeof groupStrategies)[number]
