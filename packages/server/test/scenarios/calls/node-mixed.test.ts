import { startNode } from './composition.ts'
import { registerMixed } from './mixed.ts'

const start = startNode()
registerMixed('one node', start)
