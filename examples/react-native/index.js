import { AppRegistry } from 'react-native'
import { App } from './App.tsx'
import { startPhone } from './src/phone.ts'
import { startWaking } from './src/waking.ts'

// Also where the system starts the app for a push, without anything on the screen.
startPhone()
startWaking()
AppRegistry.registerComponent('RingwirePhone', () => App)
