import { registerArrivalScenarios } from './arrival.ts'
import { startEmbedded } from './start.ts'

registerArrivalScenarios('embedded', startEmbedded)
