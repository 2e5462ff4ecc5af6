import { startEmbedded } from './composition.ts'
import { registerRestart } from './restart.ts'

registerRestart('embedded', startEmbedded)
