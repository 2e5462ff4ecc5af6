import { startEmbedded } from './composition.ts'
import { registerNotices } from './notices.ts'

registerNotices('embedded', startEmbedded)
