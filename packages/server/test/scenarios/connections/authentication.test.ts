import { registerAuthenticationScenarios } from './authentication.ts'
import { startEmbedded } from './start.ts'

registerAuthenticationScenarios('embedded', startEmbedded)
