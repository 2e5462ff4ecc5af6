import { startEmbedded } from '../calls/composition.ts'
import { registerSessions } from './sessions.ts'

registerSessions('embedded', startEmbedded)
