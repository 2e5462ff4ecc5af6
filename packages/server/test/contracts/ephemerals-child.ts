/* A process that holds the sign of a node until it is killed: `redis URL PREFIX NODE` or `postgres URL - NODE`. */
import { writeSync } from 'node:fs'
import { openEphemerals } from './ephemerals.ts'

const [kind = '', url = '', prefix = '', node = ''] = process.argv.slice(2)
const { ephemerals } = await openEphemerals(kind as 'redis' | 'postgres', url, prefix)
ephemerals.hold(node, { onHeld: () => void writeSync(1, 'held\n'), onLost() {} })
// Nothing else keeps it alive.
setInterval(() => {}, 1_000)
