import { startEmbedded } from './composition.ts'
import { registerInvites } from './invites.ts'
import { registerRepeats } from './repeats.ts'

registerInvites('embedded', startEmbedded)
registerRepeats('embedded', startEmbedded)
