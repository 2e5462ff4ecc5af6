import { startTwoNodes } from './composition.ts'
import { registerRestart } from './restart.ts'

const start = startTwoNodes()
registerRestart('two nodes', start, true)
