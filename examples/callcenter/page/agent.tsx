/** An agent sees who waits and calls them, and is woken when this page is closed. */
import { useCallClient } from '@ringwire/client/react'
import { useCallUi } from '@ringwire/ui'
import { useEffect, useState } from 'react'
import { client, type Desk, nextOfQueue, type Person, type Start, type Waiting } from './backend.ts'
import { Avatar, History, List, LiveRow, Page, useDesk, useNow } from './parts.tsx'
import { useWaking, type Waking } from './waking.ts'
import { aboutText, agentWords, clockText, sidesOf } from './words.ts'

export function AgentPage({ user, start }: { user: Person; start: Start }) {
  const desk = useDesk()
  const waking = useWaking(start)
  const ringing = desk?.live.filter(({ status }) => status === 'ringing')
  const talking = desk?.live.filter(({ status }) => status !== 'ringing')
  const colleagues = desk?.agents.filter(({ user_id }) => user_id !== user.user_id)
  const idle = (
    <>
      <h2>Ready</h2>
      <p>Calls ring here. {waking.state === 'on' && 'When you close this page, they wake your browser.'}</p>
    </>
  )
  return (
    <Page user={user} desk={desk} idle={idle} onLeave={waking.stop}>
      <WakingCard waking={waking} />
      <Asked desk={desk} />
      <NextCaller queue={desk?.queue} />
      <List title="Queue" empty="Nobody waits." count={desk?.queue?.length}>
        {desk?.queue?.map((customer) => (
          <QueueRow key={customer.user_id} customer={customer} />
        ))}
      </List>
      <List title="Ringing" empty="No call rings." count={ringing?.length}>
        {ringing?.map((call) => (
          <LiveRow
            key={call.call_uuid}
            call={call}
            note={`For ${nameFor(sidesOf(call).agent, user)} · ${aboutText(call)}`}
          />
        ))}
      </List>
      <List title="Talking" empty="No call goes on." count={talking?.length}>
        {talking?.map((call) => (
          <LiveRow
            key={call.call_uuid}
            call={call}
            note={`With ${nameFor(sidesOf(call).agent, user)} · ${aboutText(call)}`}
          />
        ))}
      </List>
      <List title="Colleagues" empty="You are alone today." count={colleagues?.length}>
        {colleagues?.map(({ user_id, display_name, about, state }) => (
          <li key={user_id} className="row" data-agent={user_id} data-state={state}>
            <Avatar name={display_name} />
            <span className="what">
              <strong>{display_name}</strong>
              <span>{about}</span>
              <span className="state">{agentWords[state]}</span>
            </span>
          </li>
        ))}
      </List>
      <History desk={desk} side={(call) => sidesOf(call).customer} />
    </Page>
  )
}

/** Offers the customer who waits longest, while this agent is in no call. */
function NextCaller({ queue }: { queue: Desk['queue'] }) {
  const { call, place } = useCallUi()
  const { state } = useCallClient(client)
  const [problem, setProblem] = useState('')
  const [first] = queue ?? []
  if (first === undefined || call !== undefined) return null
  const callNext = async () => {
    try {
      const next = await nextOfQueue()
      if (next === undefined) return setProblem('A colleague was faster.')
      setProblem('')
      const { user_id: userId, display_name: displayName, context_id: contextId } = next
      place({ userId, role: 'customer', displayName, contextType: 'order', contextId })
    } catch {
      setProblem('That did not work. Try again in a moment.')
    }
  }
  return (
    <section className="card call-out" data-testid="next-caller">
      <h2>Next caller</h2>
      <p>
        {first.display_name} · order {first.context_id}
      </p>
      <button type="button" disabled={state.name !== 'online'} onClick={() => void callNext()}>
        Call {first.display_name}
      </button>
      {problem !== '' && <p role="status">{problem}</p>}
    </section>
  )
}

function QueueRow({ customer: { user_id, display_name, context_id, since } }: { customer: Waiting }) {
  const now = useNow()
  return (
    <li className="row" data-waiting={user_id}>
      <Avatar name={display_name} />
      <span className="what">
        <strong>{display_name}</strong>
        <span>Order {context_id}</span>
      </span>
      <span className="clock">{clockText(now - since)}</span>
    </li>
  )
}

const nameFor = ({ user_id, display_name }: { user_id: string; display_name: string }, user: Person) =>
  user_id === user.user_id ? 'you' : display_name

/** The call that a notification was clicked for: it is answered when it rings here. */
function Asked({ desk }: { desk: Desk | undefined }) {
  const { call, phase, accept } = useCallUi()
  const [asked, setAsked] = useState(() => new URLSearchParams(location.search).get('answer'))
  useEffect(() => {
    // A page that is loaded again does not answer once more.
    history.replaceState(null, '', '/')
    const heard = ({ data }: MessageEvent) => setAsked(data.answer ?? null)
    navigator.serviceWorker?.addEventListener('message', heard)
    return () => navigator.serviceWorker?.removeEventListener('message', heard)
  }, [])
  useEffect(() => {
    if (asked === null || phase !== 'incoming' || call?.callUuid !== asked) return
    setAsked(null)
    accept()
  }, [asked, phase, call, accept])
  const late = desk?.history.find(({ call_uuid }) => call_uuid === asked)
  if (late === undefined) return null
  return (
    <p className="banner" role="status">
      The call of {late.caller.display_name} was over before you could answer.{' '}
      <button type="button" className="quiet" onClick={() => setAsked(null)}>
        Close
      </button>
    </p>
  )
}

function WakingCard({ waking: { state, begin } }: { waking: Waking }) {
  if (state === 'on') {
    return <p className="hint">When this page is closed, calls wake this browser.</p>
  }
  return (
    <section className="card call-out">
      <h2>Be reachable when this page is closed</h2>
      <p>{wakingWords[state]}</p>
      {(state === 'off' || state === 'failed') && (
        <button type="button" id="wake-me" onClick={() => void begin()}>
          Wake me for calls
        </button>
      )}
    </section>
  )
}

const wakingWords: Record<Exclude<Waking['state'], 'on'>, string> = {
  off: 'Your browser shows a notification with Answer and Decline.',
  asking: 'One moment …',
  denied: 'Notifications are not allowed for this page. Allow them in the settings of the browser, then load it again.',
  impossible: 'This browser cannot be woken: it has no push service, or no notifications.',
  failed: 'That did not work: the push service of this browser or the call service cannot be reached.',
}
