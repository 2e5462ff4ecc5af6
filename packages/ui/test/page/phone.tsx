import { createCallClient } from '@ringwire/client'
import {
  CallProvider,
  CallStage,
  DeviceMenu,
  DevicePreview,
  IncomingDialog,
  RestorableCalls,
  useCallUi,
} from '@ringwire/ui'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'

/* A phone of components alone. The page's query says who is signed in, and whom they call. */

const query = new URLSearchParams(location.search)
const peer = { userId: query.get('calls') ?? '', role: query.get('peer') ?? '' }

const client = createCallClient({
  getToken: () => fetch('/call-token', { method: 'POST' }),
  storage: sessionStorage,
})

const media = { statsIntervalMs: 500 }

function Idle() {
  const { place } = useCallUi()
  const call = (callType: string) => place({ ...peer, displayName: 'Ben Ortiz', callType })
  return (
    <div>
      <button type="button" data-testid="call-video" onClick={() => call('video')}>
        Call Ben
      </button>
      <button type="button" data-testid="call-audio" onClick={() => call('audio')}>
        Call Ben without picture
      </button>
      {query.get('preview') && <DeviceMenu />}
      {query.get('preview') && <DevicePreview />}
    </div>
  )
}

function Phone() {
  return (
    <CallProvider client={client} media={media} busy={query.get('busy') === 'hold' ? 'hold' : 'reject'}>
      <main>
        <h1>Phone</h1>
        <RestorableCalls />
        <CallStage keys details idle={<Idle />} />
      </main>
      <IncomingDialog />
    </CallProvider>
  )
}

createRoot(document.querySelector('#root') as HTMLElement).render(
  <StrictMode>
    <Phone />
  </StrictMode>,
)
client.connect()
