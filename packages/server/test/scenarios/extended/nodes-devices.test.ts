import { startTwoNodes } from '../calls/composition.ts'
import { registerDevices } from './devices.ts'

const start = startTwoNodes()
registerDevices('two nodes', start)
