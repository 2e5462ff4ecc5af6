import { startNode } from './composition.ts'
import { registerLosses } from './losses.ts'
import { registerRinging } from './ringing.ts'

const start = startNode()
registerRinging('one node', start)
registerLosses('one node', start)
