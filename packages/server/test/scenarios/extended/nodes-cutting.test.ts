import { startTwoNodes } from '../calls/composition.ts'
import { registerCutting } from './cutting.ts'

const start = startTwoNodes()
registerCutting('two nodes', start, { calls: 300, short: 100, callers: 30, callees: 30 })
