import { registerLostClockScenarios } from './lost-clocks.ts'
import { startEmbedded } from './start.ts'

registerLostClockScenarios('embedded', startEmbedded)
