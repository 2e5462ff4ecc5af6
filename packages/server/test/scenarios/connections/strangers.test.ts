import { startEmbedded } from './start.ts'
import { registerStrangerScenarios } from './strangers.ts'

registerStrangerScenarios('embedded', startEmbedded)
