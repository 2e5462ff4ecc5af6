import { startTwoNodes } from '../calls/composition.ts'
import { registerResume } from './resume.ts'

const start = startTwoNodes()
registerResume('two nodes', start, true)
