/** The same phone with React: clients, calls and media live outside of components, which read them with hooks. */
import { type Call, createCallClient } from '@ringwire/client'
import { type CallMedia, createCallMedia } from '@ringwire/client/media'
import { useCall, useCallClient, useCallMedia } from '@ringwire/client/react'
import { useCallback, useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'

const client = createCallClient({
  getToken: () => fetch('/call-token', { method: 'POST' }),
  // A page that is loaded again goes on with its call.
  storage: sessionStorage,
})
/** Whom each of the two calls. */
const peers = { ann: { userId: 'ben', role: 'agent' }, ben: { userId: 'ann', role: 'customer' } }
type Name = keyof typeof peers

function SignIn({ onName }: { onName(name: Name): void }) {
  const signIn = async (name: Name) => {
    const { ok } = await fetch(`/sign-in?name=${name}`, { method: 'POST' })
    if (ok) onName(name)
  }
  return (
    <p>
      <button type="button" id="ann" onClick={() => signIn('ann')}>
        I am Ann
      </button>{' '}
      <button type="button" id="ben" onClick={() => signIn('ben')}>
        I am Ben
      </button>
    </p>
  )
}

function Phone({ name }: { name: Name }) {
  const { state, calls } = useCallClient(client)
  const [call] = calls
  const callState = useCall(call)
  const [media, setMedia] = useState<CallMedia>()

  const join = useCallback((call: Call) => {
    const media = createCallMedia(call, { client })
    media.start().catch(({ code }) => {
      if (code !== 'CLOSED') console.error(`No camera or microphone: ${code}`)
    })
    setMedia(media)
  }, [])
  useEffect(() => {
    const forget = client.on('restored', join)
    client.connect()
    return forget
  }, [join])

  if (!call) {
    const place = () => join(client.call({ ...peers[name], callType: 'video' }))
    return (
      <>
        <p role="status">{state.name}</p>
        <button type="button" id="call" disabled={state.name !== 'online'} onClick={place}>
          Call
        </button>
      </>
    )
  }
  const answer = () => {
    join(call)
    void call.accept()
  }
  return (
    <>
      <p role="status">{`${call.peer.displayName ?? call.peer.userId}: ${callState?.name}`}</p>
      {call.direction === 'incoming' && callState?.name === 'ringing' && (
        <button type="button" id="answer" onClick={answer}>
          Answer
        </button>
      )}{' '}
      <button type="button" id="hang-up" onClick={() => void call.end()}>
        Hang up
      </button>
      {media && <Pictures media={media} />}
    </>
  )
}

function Pictures({ media }: { media: CallMedia }) {
  const { local, muted } = useCallMedia(media)
  const showOwn = useCallback((video: HTMLVideoElement) => Object.assign(video, { srcObject: local }), [local])
  return (
    <p>
      <Picture id="remote" show={media.attach} />
      <Picture id="own" show={showOwn} />
      <button type="button" onClick={() => void media.setMuted('audio', !muted.audio)}>
        {muted.audio ? 'Unmute' : 'Mute'}
      </button>
    </p>
  )
}

/** A picture of one's own is small, and makes no sound. */
function Picture({ id, show }: { id: 'remote' | 'own'; show(video: HTMLVideoElement): unknown }) {
  const found = useCallback((video: HTMLVideoElement | null) => void (video && show(video)), [show])
  return <video id={id} className={id} ref={found} muted={id === 'own'} autoPlay playsInline />
}

function Application() {
  const [name, setName] = useState(() => sessionStorage.getItem('name') as Name | null)
  const enter = (name: Name) => {
    sessionStorage.setItem('name', name)
    setName(name)
  }
  return name ? <Phone name={name} /> : <SignIn onName={enter} />
}

createRoot(document.querySelector('main') as HTMLElement).render(<Application />)
