import { registerNetworkChangeScenarios } from './network-change.ts'
import { startEmbedded } from './start.ts'

registerNetworkChangeScenarios('embedded', startEmbedded)
