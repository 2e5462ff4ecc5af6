import { randomBytes } from 'node:crypto'

/**
 * A run of a node: its id, when it began, and a nonce. A node that starts again under its id is another run: what the last
 * one held, it does not hold. `at` is by the clock that all nodes go by, in ms since the epoch.
 */
export function newNodeName(nodeId: string, at: number, nonce = randomBytes(6).toString('base64url')): string {
  return `${runsOf(nodeId)}${at.toString(36).padStart(beganLength, '0')}${nonce}`
}

/**
 * When a run begins, so that it is later than `last`, the latest run of its node before it; null: there was none. The clock that
 * all nodes go by may have been put back since. In ms since the epoch.
 */
export function beginAfter(last: string | null, now: number): number {
  if (last === null) return Math.round(now)
  const began = last.lastIndexOf(separator) + 1
  return Math.max(Math.round(now), Number.parseInt(last.slice(began, began + beganLength), 36) + 1)
}

/** Every run of a node has a name that begins with this. */
export const runsOf = (nodeId: string): string => nodeId + separator

const separator = '~'
/** Of the begin of a run in its name, with leading zeros: later runs have greater names. */
const beganLength = 10

/** Whether a run is over because its node runs again. */
export function isReplacedBy(run: string, other: string): boolean {
  if (other <= run) return false
  const end = run.lastIndexOf(separator)
  return end >= 0 && other.startsWith(run.slice(0, end + 1))
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

/** Whether a name belongs to one of its workers. */
export function isWorkerOf(name: string, nodeId: string): boolean {
  const id = idOf(name)
  return id.startsWith(`${nodeId}-`) && /^\d+$/.test(id.slice(nodeId.length + 1))
}

/** How the stores show a connection of this program; of a node, with its id. PostgreSQL cuts off what is longer, Redis takes no spaces. */
export function connectionName(nodeId?: string): string {
  if (nodeId === undefined) return 'ringwire'
  return `ringwire:${nodeId.replace(/[^!-~]/g, '_')}`.slice(0, 63)
}

export function idOf(name: string): string {
  const end = name.lastIndexOf(separator)
  return end < 0 ? name : name.slice(0, end)
}
