import { registerLimitScenarios } from './limits.ts'
import { startEmbedded } from './start.ts'

registerLimitScenarios('embedded', startEmbedded)
