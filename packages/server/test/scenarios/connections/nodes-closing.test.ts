import { startTwoNodes } from '../calls/composition.ts'
import { registerClosingScenarios } from './closing.ts'

const start = startTwoNodes({})
registerClosingScenarios('two nodes', start)
