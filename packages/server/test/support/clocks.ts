/** By which the clocks of a test and of a node, or of two nodes, may differ: a node goes by its database. In ms. */
export const clockMs = 200

/** By how much a time limit of one node may seem early to a test on the same machine, in ms: both round. */
export const earlyMs = 50
