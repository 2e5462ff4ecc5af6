/** The same phone of the components in @ringwire/ui: they hold the call and its media. */
import { createCallClient } from '@ringwire/client'
import { useCallClient } from '@ringwire/client/react'
import { CallProvider, CallStage, IncomingDialog, RestorableCalls, useCallUi } from '@ringwire/ui'
import '@ringwire/ui/ui.css'
import { useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'

const client = createCallClient({
  getToken: () => fetch('/call-token', { method: 'POST' }),
  // A page that is loaded again goes on with its call.
  storage: sessionStorage,
})
/** Whom each of the two calls. */
const peers = {
  ann: { userId: 'ben', role: 'agent', displayName: 'Ben' },
  ben: { userId: 'ann', role: 'customer', displayName: 'Ann' },
}
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

/** The stage while there is no call. */
function Idle({ name }: { name: Name }) {
  const { place } = useCallUi()
  const { state } = useCallClient(client)
  const call = () => place({ ...peers[name], callType: 'video' })
  return (
    <>
      <p role="status">{state.name}</p>
      <button type="button" id="call" disabled={state.name !== 'online'} onClick={call}>
        Call {peers[name].displayName}
      </button>
    </>
  )
}

function Phone({ name }: { name: Name }) {
  useEffect(() => client.connect(), [])
  return (
    <CallProvider client={client} busy="wait">
      <RestorableCalls />
      <div className="stage">
        <CallStage keys idle={<Idle name={name} />} />
      </div>
      <IncomingDialog />
    </CallProvider>
  )
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
