import { startTwoNodes } from '../calls/composition.ts'
import { registerArrivalScenarios } from './arrival.ts'
import { registerSignsOfLifeScenarios } from './signs-of-life.ts'

const start = startTwoNodes({})
registerArrivalScenarios('two nodes', start)
registerSignsOfLifeScenarios('two nodes', start)
