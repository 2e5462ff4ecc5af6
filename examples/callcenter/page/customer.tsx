/** A customer sees who is there, and calls. */
import { useCallClient } from '@ringwire/client/react'
import { useCallUi } from '@ringwire/ui'
import { type Agent, client, type Person } from './backend.ts'
import { Avatar, History, List, Page, useDesk } from './parts.tsx'
import { agentWords } from './words.ts'

export function CustomerPage({ user }: { user: Person }) {
  const desk = useDesk()
  const idle = (
    <>
      <h2>How can we help?</h2>
      <p>Choose somebody to call. You talk in this page.</p>
    </>
  )
  return (
    <Page user={user} desk={desk} idle={idle}>
      <List title="Agents" empty="Nobody works here." count={desk?.agents.length}>
        {desk?.agents.map((agent) => (
          <AgentRow key={agent.user_id} agent={agent} />
        ))}
      </List>
      <History desk={desk} side={({ caller, callee }) => (caller.role === 'agent' ? caller : callee)} />
    </Page>
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
