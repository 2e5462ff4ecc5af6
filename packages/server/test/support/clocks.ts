/** By which the clocks of a test and of a node, or of two nodes, may differ: a node goes by its database. In ms. */
export const clockMs = 200
