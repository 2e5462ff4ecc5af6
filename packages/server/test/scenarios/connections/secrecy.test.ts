import { registerSecrecyScenarios } from './secrecy.ts'
import { startEmbedded } from './start.ts'

registerSecrecyScenarios('embedded', startEmbedded)
