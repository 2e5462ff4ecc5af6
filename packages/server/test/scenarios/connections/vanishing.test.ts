import { startEmbedded } from './start.ts'
import { registerVanishingScenarios } from './vanishing.ts'

registerVanishingScenarios('embedded', startEmbedded)
