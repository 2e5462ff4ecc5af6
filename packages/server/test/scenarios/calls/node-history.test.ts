import { startNode } from './composition.ts'
import { registerHistory } from './history.ts'

const start = startNode()
registerHistory('one node', start)
