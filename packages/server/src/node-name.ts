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

/** The id of one of several workers of a node; counted from 1. */
export function workerId(nodeId: string, worker: number): string {
  return `${nodeId}-${worker}`
}

/** The id of the node that a worker is of. */
export function nodeOfWorker(id: string, worker: number): string {
  const ending = workerId('', worker)
  return id.endsWith(ending) ? id.slice(0, -ending.length) : id
}

/** Whether a name is of one of its workers. */
export function isWorkerOf(name: string, nodeId: string): boolean {
  const id = idOf(name)
  return id.startsWith(`${nodeId}-`) && /^\d+$/.test(id.slice(nodeId.length + 1))
}

function idOf(name: string): string {
  const end = name.lastIndexOf(separator)
  return end < 0 ? name : name.slice(0, end)
}
