import { startTwoNodes } from './composition.ts'
import { registerHistory } from './history.ts'

const start = startTwoNodes()
registerHistory('two nodes', start)
