import { startTwoNodes } from '../calls/composition.ts'
import { registerLimitScenarios } from './limits.ts'
import { registerLostClockScenarios } from './lost-clocks.ts'
import { registerStrangerScenarios } from './strangers.ts'
import { registerVanishingScenarios } from './vanishing.ts'

const start = startTwoNodes({})
registerLostClockScenarios('two nodes', start)
registerVanishingScenarios('two nodes', start)
registerStrangerScenarios('two nodes', start)
registerLimitScenarios('two nodes', start)
