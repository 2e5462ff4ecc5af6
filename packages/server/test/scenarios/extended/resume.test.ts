import { startEmbedded } from '../calls/composition.ts'
import { registerResume } from './resume.ts'

registerResume('embedded', startEmbedded)
