import { randomBytes } from 'node:crypto'

/**
 * A run of a node: its id, and what tells it from its earlier runs. A node that starts again under its id is another run:
 * what the last one held, it does not hold.
 */
export function newNodeName(nodeId: string): string {
  return `${nodeId}${separator}${randomBytes(6).toString('base64url')}`
}

const separator = '~'

/** Whether two names are of one node: then the earlier run is over. */
export function isSameNode(one: string, other: string): boolean {
  return idOf(one) === idOf(other)
}

function idOf(name: string): string {
  const end = name.lastIndexOf(separator)
  return end < 0 ? name : name.slice(0, end)
}
