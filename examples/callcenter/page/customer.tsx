/** A customer sees who is there, and calls. */
import { useCallClient } from '@ringwire/client/react'
import { useCallUi } from '@ringwire/ui'
import { type Agent, client, type Desk, leaveQueue, type Person } from './backend.ts'
import { Avatar, History, List, Page, useDesk } from './parts.tsx'
import { agentWords, sidesOf } from './words.ts'

export function CustomerPage({ user }: { user: Person }) {
  const desk = useDesk()
  const idle = (
    <>
      <h2>How can we help?</h2>
      {desk?.hours.isOpen === false ? (
        <p>We are closed now. You reach us {desk.hours.text}.</p>
      ) : (
        <p>Choose somebody to call. You talk in this page.</p>
      )}
    </>
  )
  return (
    <Page user={user} desk={desk} idle={idle}>
      {desk?.place ? <Place place={desk.place} /> : null}
      <Support desk={desk} />
      <List title="Agents" empty="Nobody works here." count={desk?.agents.length}>
        {desk?.agents.map((agent) => (
          <AgentRow key={agent.user_id} agent={agent} />
        ))}
      </List>
      <History desk={desk} side={(call) => sidesOf(call).agent} />
    </Page>
  )
}

/** All agents who are free ring, and the first one who answers has the call. */
function Support({ desk }: { desk: Desk | undefined }) {
  const { place, call } = useCallUi()
  const { state } = useCallClient(client)
  const free = desk?.agents.filter(({ state }) => state === 'here' || state === 'asleep').length
  return (
    <section className="card">
      <h2>Support</h2>
      <p>{free ? 'The first agent who answers has your call.' : 'Nobody is free now. You can wait in the queue.'}</p>
      <button
        type="button"
        id="call-support"
        disabled={state.name !== 'online' || call !== undefined}
        onClick={() => place({ group: 'support', role: 'agent', displayName: 'Support' })}
      >
        Call support
      </button>
    </section>
  )
}

/** Nobody could take the call. */
function Place({ place }: { place: number }) {
  const { call } = useCallUi()
  if (call !== undefined) return null
  return (
    <section className="card call-out" role="status" data-testid="queued">
      <h2>You are number {place} in the queue</h2>
      <p>Keep this page open. The next agent who is free calls you.</p>
      <button type="button" className="quiet" id="leave-queue" onClick={() => void leaveQueue()}>
        Leave the queue
      </button>
    </section>
  )
}

/** An agent who is away for good can be called, too: then the call is in the history as missed. */
function AgentRow({ agent: { user_id: userId, display_name: displayName, about, state } }: { agent: Agent }) {
  const { place, call } = useCallUi()
  const { state: connection } = useCallClient(client)
  return (
    <li className="row" data-agent={userId} data-state={state}>
      <Avatar name={displayName} />
      <span className="what">
        <strong>{displayName}</strong>
        <span>{about}</span>
        <span className="state">{agentWords[state]}</span>
      </span>
      <button
        type="button"
        disabled={connection.name !== 'online' || call !== undefined}
        onClick={() => place({ userId, role: 'agent', displayName })}
        aria-label={`Call ${displayName}`}
      >
        Call
      </button>
    </li>
  )
}
