import { startTwoNodes } from './composition.ts'
import { registerConnecting } from './connecting.ts'
import { registerNotices } from './notices.ts'

const start = startTwoNodes()
registerNotices('two nodes', start, true)
registerConnecting('two nodes', start)
