import { registerPlaceScenarios } from './places.ts'
import { startEmbedded } from './start.ts'

registerPlaceScenarios('embedded', startEmbedded)
