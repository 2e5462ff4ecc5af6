/** The page: signing in, the people whom one may call, and the call, of the components in @ringwire/ui. */
import { createCallClient } from '@ringwire/client'
import { useCallClient } from '@ringwire/client/react'
import { CallProvider, CallStage, IncomingDialog, RestorableCalls, useCallUi } from '@ringwire/ui'
import '@ringwire/ui/ui.css'
import { useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'

interface Person {
  user_id: string
  role: string
  display_name: string
}
/** The backend's answer: the signed-in person, or the people who could sign in. */
interface Start {
  me?: Person
  peers?: Person[]
  names?: { name: string; display_name: string }[]
}

const post = (path: string) => fetch(path, { method: 'POST' })

const client = createCallClient({
  getToken: () => post('/call-token'),
  // A page that is loaded again goes on with its call.
  storage: sessionStorage,
})

/** The stage while there is no call. */
function People({ peers }: { peers: Person[] }) {
  const { place } = useCallUi()
  const { state } = useCallClient(client)
  return (
    <div className="people">
      {peers.map(({ user_id, role, display_name }) => (
        <div className="person" key={user_id}>
          <strong>{display_name}</strong>
          {(['video', 'audio'] as const).map((callType) => (
            <button
              type="button"
              key={callType}
              className={callType === 'audio' ? 'second' : ''}
              data-call={callType}
              disabled={state.name !== 'online'}
              onClick={() => place({ userId: user_id, role, displayName: display_name, callType })}
            >
              {callType === 'video' ? 'Video call' : 'Audio call'}
            </button>
          ))}
        </div>
      ))}
    </div>
  )
}

function Phone({ me, peers, onLeave }: { me: Person; peers: Person[]; onLeave(): void }) {
  const { state } = useCallClient(client)
  useEffect(() => {
    client.connect()
    return () => client.close()
  }, [])
  return (
    <CallProvider client={client}>
      <header>
        <strong>{me.display_name}</strong>
        <span role="status" data-state={state.name}>
          {state.name}
        </span>
        <button type="button" className="second" onClick={onLeave}>
          Sign out
        </button>
      </header>
      <RestorableCalls />
      <main>
        <CallStage keys idle={<People peers={peers} />} />
      </main>
      <IncomingDialog />
    </CallProvider>
  )
}

function SignIn({ names, onName }: { names: NonNullable<Start['names']>; onName(name: string): void }) {
  return (
    <div className="sign-in">
      <h1>Who are you?</h1>
      {names.map(({ name, display_name }) => (
        <button type="button" key={name} data-name={name} onClick={() => onName(name)}>
          {display_name}
        </button>
      ))}
      <p>Sign in as the other one in a private window.</p>
    </div>
  )
}

function Application() {
  const [start, setStart] = useState<Start>()
  const ask = async () => setStart(await (await fetch('/me')).json())
  useEffect(() => void ask(), [])
  if (start === undefined) return null
  const { me, peers = [], names = [] } = start
  const enter = (name: string) => void post(`/sign-in?name=${name}`).then(ask)
  if (me === undefined) return <SignIn names={names} onName={enter} />
  return <Phone me={me} peers={peers} onLeave={() => void post('/sign-out').then(ask)} />
}

createRoot(document.querySelector('#root') as HTMLElement).render(<Application />)
