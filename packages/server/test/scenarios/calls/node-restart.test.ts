import { startNode } from './composition.ts'
import { registerRestart } from './restart.ts'

const start = startNode()
registerRestart('one node', start, true)
