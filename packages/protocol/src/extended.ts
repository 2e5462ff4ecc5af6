/** Query parameters of an extended connection [EXT1, RES1]. */
export const extendedQuery = { extended: 'ext', resume: 'resume', epoch: 'epoch', seq: 'seq', replied: 'n' } as const
