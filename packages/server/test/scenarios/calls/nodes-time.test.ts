import { startTwoNodes } from './composition.ts'
import { registerLosses } from './losses.ts'
import { registerRinging } from './ringing.ts'

const start = startTwoNodes()
registerRinging('two nodes', start)
registerLosses('two nodes', start)
