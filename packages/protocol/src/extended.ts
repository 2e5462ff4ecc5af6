/** Query parameters of an extended connection [EXT1, EXT6, RES1]. */
export const extendedQuery = {
  extended: 'ext',
  can: 'can',
  resume: 'resume',
  epoch: 'epoch',
  seq: 'seq',
  replied: 'n',
} as const
