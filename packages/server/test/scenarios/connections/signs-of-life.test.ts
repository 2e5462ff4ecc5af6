import { registerSignsOfLifeScenarios } from './signs-of-life.ts'
import { startEmbedded } from './start.ts'

registerSignsOfLifeScenarios('embedded', startEmbedded)
