import { startEmbedded } from './composition.ts'
import { registerHistory } from './history.ts'

registerHistory('embedded', startEmbedded)
