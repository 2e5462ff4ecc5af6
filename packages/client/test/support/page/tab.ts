import { createCallClient } from '../../../src/client.ts'
import type { CallClient, ConnectionState, RingwireErrorShape } from '../../../src/types.ts'

/** A tab of an application: signed in as whom the query names, with its session in sessionStorage; `hasty` waits for little. */
export interface Tab {
  readonly client: CallClient
  readonly states: ConnectionState[]
  readonly errors: RingwireErrorShape[]
  sleep(ms: number): void
}
declare global {
  interface Window {
    tab: Tab
  }
}

/** The device sleeps for this time. Only its clock goes on. */
let sleptMs = 0
const now = Date.now
Date.now = () => now() + sleptMs
const sleep = (ms: number) => {
  sleptMs += ms
}

const states: ConnectionState[] = []
const errors: RingwireErrorShape[] = []
const isHasty = new URLSearchParams(location.search).has('hasty')
const client = createCallClient({
  // A GET would wait in the browser's cache for the one before it, which was given up.
  getToken: () => fetch(`/token${location.search}`, { method: 'POST' }),
  storage: sessionStorage,
  heartbeatTimeoutMs: 500,
  ...(isHasty ? { connectTimeoutMs: 6_000, reconnectBaseMs: 20, reconnectMaxMs: 200 } : {}),
})
client.on('error', (error) => errors.push(error))
client.on('state', (state) => states.push(state))
client.connect()
window.tab = { client, states, errors, sleep }
