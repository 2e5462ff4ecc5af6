import { startEmbedded } from './composition.ts'
import { registerLosses } from './losses.ts'
import { registerRinging } from './ringing.ts'

registerRinging('embedded', startEmbedded)
registerLosses('embedded', startEmbedded)
