import { startTwoNodes } from '../calls/composition.ts'
import { registerAuthenticationScenarios } from './authentication.ts'

const start = startTwoNodes({})
registerAuthenticationScenarios('two nodes', start)
