import { startEmbedded } from '../calls/composition.ts'
import { registerUpstream } from './upstream.ts'

registerUpstream('embedded', startEmbedded)
