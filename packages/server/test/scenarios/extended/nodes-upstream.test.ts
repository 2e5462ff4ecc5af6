import { startTwoNodes } from '../calls/composition.ts'
import { registerUpstream } from './upstream.ts'

const start = startTwoNodes()
registerUpstream('two nodes', start)
