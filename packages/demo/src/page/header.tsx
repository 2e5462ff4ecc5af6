import type { ConnectionState } from '@ringwire/client'
import { useCallClient } from '@ringwire/client/react'
import { Avatar } from './avatar.tsx'
import type { Desk } from './desk.ts'
import { Icon } from './icons.tsx'
import { forgetIdentity } from './identity.ts'
import { NotifyButton } from './notify-button.tsx'

/** How the page writes the SDK's states. */
const connectionWords = {
  idle: { state: 'connecting', text: 'Connecting …' },
  connecting: { state: 'connecting', text: 'Connecting …' },
  online: { state: 'online', text: 'Online' },
  waiting: { state: 'waiting', text: 'Reconnecting …' },
  closed: { state: 'stopped', text: 'Disconnected' },
} as const satisfies Record<ConnectionState['name'], { state: string; text: string }>

type Props = { desk: Desk; isRelayOnly: boolean; isLogOpen: boolean; toggleLog(): void }

export function Header({ desk, isRelayOnly, isLogOpen, toggleLog }: Props) {
  const { state } = useCallClient(desk.client)
  const words = connectionWords[state.name]
  const { name, role } = desk.identity
  const signOut = () => {
    desk.stop()
    forgetIdentity()
    location.reload()
  }
  return (
    <header className="bar">
      <h1 className="brand">
        <img src="icon.svg" alt="" width="28" height="28" />
        <span>Ringwire</span>
      </h1>
      <span className="chip" data-state={words.state} data-testid="connection" role="status">
        <span className="dot" aria-hidden="true" />
        {words.text}
      </span>
      {isRelayOnly && <span className="chip">Relay only</span>}
      <NotifyButton />
      <button
        type="button"
        className="icon-button"
        aria-label="Signaling log"
        title="Signaling log"
        aria-expanded={isLogOpen}
        aria-controls="log"
        data-testid="log-toggle"
        onClick={toggleLog}
      >
        <Icon name="log" />
      </button>
      <span className="me" data-testid="me">
        <Avatar name={name} small />
        <span className="person-text">
          <span className="person-name" title={name}>
            {name}
          </span>
          <span className="person-about">{role}</span>
        </span>
      </span>
      <button type="button" className="icon-button" aria-label="Sign out" title="Sign out" onClick={signOut}>
        <Icon name="signOut" />
      </button>
    </header>
  )
}
