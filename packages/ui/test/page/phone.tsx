import { createCallClient } from '@ringwire/client'
import { createCallMedia } from '@ringwire/client/media'
import { takeCapabilities } from '@ringwire/client/take'
import { createTransfers, transferCapabilities } from '@ringwire/client/transfer'
import {
  CallProvider,
  CallStage,
  CallTones,
  DeviceMenu,
  DevicePreview,
  IncomingDialog,
  RestorableCalls,
  TakeableCalls,
  TransferButton,
  type TransferChoice,
  useCallUi,
} from '@ringwire/ui'
import { StrictMode, useEffect } from 'react'
import { createRoot } from 'react-dom/client'

/* A phone made of nothing but components. The page's query says who is signed in, and whom they call. */

const query = new URLSearchParams(location.search)
const peer = { userId: query.get('calls') ?? '', role: query.get('peer') ?? '' }

const client = createCallClient({
  getToken: () => fetch('/call-token', { method: 'POST' }),
  storage: sessionStorage,
  can: [...takeCapabilities, ...transferCapabilities],
})

/** Whom this page may transfer to. */
const team = JSON.parse(query.get('team') ?? '[]') as TransferChoice[]
const transfers = query.get('team') ? createTransfers(client) : undefined
const search = async (text: string) =>
  team.filter(({ displayName = '' }) => displayName.toLowerCase().includes(text.toLowerCase()))

/** A picture that no camera has made, as an application with a background of its own has it. */
function drawnStream(): MediaStream {
  const canvas = document.createElement('canvas')
  const pen = canvas.getContext('2d')
  const draw = () => {
    pen?.fillRect(Math.random() * 300, Math.random() * 150, 4, 4)
    requestAnimationFrame(draw)
  }
  draw()
  const sound = new AudioContext().createMediaStreamDestination()
  return new MediaStream([...canvas.captureStream(10).getTracks(), ...sound.stream.getTracks()])
}

const given = {
  stream: drawnStream,
  constraints: () => ({ audio: { noiseSuppression: false }, video: { width: { ideal: 320 }, facingMode: 'user' } }),
  sound: () => ({ audio: true }),
}[query.get('media') ?? '']
const drawn = () => drawnStream().getVideoTracks()[0] as MediaStreamTrack
const process = (track: MediaStreamTrack) => (track.kind === 'video' ? drawn() : track)
const media = { statsIntervalMs: 500, ...(given && { media: given() }), ...(query.get('process') && { process }) }

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

/** Calls as soon as it is mounted, as a page that is opened to call somebody. */
function CallAtOnce() {
  const { place } = useCallUi()
  useEffect(() => {
    place({ ...peer, callType: 'video' })
  }, [place])
  return null
}

function Phone() {
  return (
    <CallProvider
      client={client}
      media={media}
      busy={(query.get('busy') ?? 'reject') as 'reject' | 'wait' | 'hold'}
      transfers={transfers}
    >
      <main>
        <h1>Phone</h1>
        <RestorableCalls />
        <TakeableCalls />
        {query.get('at-once') && <CallAtOnce />}
        <CallStage keys details securityCode controls={<TransferButton search={search} />} idle={<Idle />} />
      </main>
      <IncomingDialog />
      {query.get('tones') && <CallTones />}
    </CallProvider>
  )
}

createRoot(document.querySelector('#root') as HTMLElement).render(
  <StrictMode>
    <Phone />
  </StrictMode>,
)
client.connect()
// For what a page does that has more than components.
Object.assign(window, { client, createCallMedia, mediaOptions: media })
