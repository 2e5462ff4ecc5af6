import { startNode } from './composition.ts'
import { registerConnecting } from './connecting.ts'
import { registerNotices } from './notices.ts'

const start = startNode()
registerNotices('one node', start, true)
registerConnecting('one node', start)
