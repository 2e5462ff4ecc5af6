import { registerClosingScenarios } from './closing.ts'
import { startEmbedded } from './start.ts'

registerClosingScenarios('embedded', startEmbedded)
