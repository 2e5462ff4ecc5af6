import { startTwoNodes } from '../calls/composition.ts'
import { registerSessions } from './sessions.ts'

const start = startTwoNodes()
registerSessions('two nodes', start)
