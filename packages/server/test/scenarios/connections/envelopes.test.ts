import { registerEnvelopeScenarios } from './envelopes.ts'
import { startEmbedded } from './start.ts'

registerEnvelopeScenarios('embedded', startEmbedded)
