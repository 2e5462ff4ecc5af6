import { startEmbedded } from './start.ts'
import { registerTokenExpiryScenarios } from './token-expiry.ts'

registerTokenExpiryScenarios('embedded', startEmbedded)
