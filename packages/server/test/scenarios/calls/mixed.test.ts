import { startEmbedded } from './composition.ts'
import { registerMixed } from './mixed.ts'

registerMixed('embedded', startEmbedded)
