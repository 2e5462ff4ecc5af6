import { startTwoNodes } from '../calls/composition.ts'
import { registerEnvelopeScenarios } from './envelopes.ts'
import { registerFrameScenarios } from './frames.ts'
import { registerSecrecyScenarios } from './secrecy.ts'
import { registerTokenExpiryScenarios } from './token-expiry.ts'

const start = startTwoNodes({})
registerEnvelopeScenarios('two nodes', start)
registerFrameScenarios('two nodes', start)
registerSecrecyScenarios('two nodes', start)
registerTokenExpiryScenarios('two nodes', start)
