import type { ConnectionState } from '@ringwire/client'
import { useCallClient, useCallMedia } from '@ringwire/client/react'
import { useCallUi } from '@ringwire/ui'
import { Avatar } from './avatar.tsx'
import type { Desk } from './desk.ts'
import { Icon } from './icons.tsx'
import { forgetIdentity } from './identity.ts'
import { NotifyButton } from './notify-button.tsx'
import { useStore } from './store.ts'

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
  const said = useStore(desk.note)
  const note = useLackNote() || said
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
      <p className="note" role="status" data-testid="note">
        {note}
      </p>
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
          <span className="person-name">{name}</span>
          <span className="person-about">{role}</span>
        </span>
      </span>
      <button type="button" className="icon-button" aria-label="Sign out" title="Sign out" onClick={signOut}>
        <Icon name="signOut" />
      </button>
    </header>
  )
}

/** What the other side does not get in a call that is live; empty where it gets all. */
function useLackNote(): string {
  const { call, media, phase } = useCallUi()
  const state = useCallMedia(media)
  if (!call || !state || phase !== 'live') return ''
  const sends = (kind: 'audio' | 'video') =>
    state.muted[kind] || state.local.getTracks().some((track) => track.kind === kind)
  const sound = sends('audio')
  if (call.callType !== 'video') return sound ? '' : 'No microphone: you hear, but send nothing.'
  if (sends('video')) return sound ? '' : 'No microphone: you send your picture only.'
  return sound ? 'No camera: you send sound only.' : 'No microphone and no camera: you see and hear, but send nothing.'
}
