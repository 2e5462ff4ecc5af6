import { startEmbedded } from './composition.ts'
import { registerConnecting } from './connecting.ts'
import { registerNotices } from './notices.ts'

registerNotices('embedded', startEmbedded)
registerConnecting('embedded', startEmbedded)
