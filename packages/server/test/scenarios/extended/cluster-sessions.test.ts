import { startSharedCluster, startTwoNodes } from '../calls/composition.ts'
import { registerDevices } from './devices.ts'
import { registerSessions } from './sessions.ts'

const start = startTwoNodes(undefined, startSharedCluster)
registerSessions('two nodes on a cluster', start)
registerDevices('two nodes on a cluster', start)
