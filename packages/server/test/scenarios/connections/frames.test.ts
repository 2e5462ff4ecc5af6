import { registerFrameScenarios } from './frames.ts'
import { startEmbedded } from './start.ts'

registerFrameScenarios('embedded', startEmbedded)
