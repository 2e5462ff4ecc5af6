import { startEmbedded } from '../calls/composition.ts'
import { registerDevices } from './devices.ts'

registerDevices('embedded', startEmbedded)
