import { startTwoNodes } from './composition.ts'
import { registerMixed } from './mixed.ts'

const start = startTwoNodes()
registerMixed('two nodes', start)
