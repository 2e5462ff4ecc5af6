import { createCallClient } from '../../../src/client.ts'
import type { CallClient, ConnectionState } from '../../../src/types.ts'

/** A tab of an application: signed in as whom the query names, with its session in sessionStorage. */
export interface Tab {
  readonly client: CallClient
  readonly states: ConnectionState[]
}
declare global {
  interface Window {
    tab: Tab
  }
}

const states: ConnectionState[] = []
const client = createCallClient({
  getToken: async () => (await fetch(`/token${location.search}`)).json(),
  storage: sessionStorage,
  heartbeatTimeoutMs: 500,
})
client.on('state', (state) => states.push(state))
client.connect()
window.tab = { client, states }
