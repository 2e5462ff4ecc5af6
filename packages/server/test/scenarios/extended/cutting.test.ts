import { startEmbedded } from '../calls/composition.ts'
import { registerCutting } from './cutting.ts'

registerCutting('embedded', startEmbedded, { calls: 1_000, short: 100, callers: 30, callees: 30 })
