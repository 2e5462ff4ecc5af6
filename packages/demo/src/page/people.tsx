import { useCallUi } from '@ringwire/ui'
import { useEffect, useRef } from 'react'
import { About } from './about.tsx'
import { Avatar } from './avatar.tsx'
import type { CallType, Peer } from './backend.ts'
import type { Desk, Listed } from './desk.ts'
import { Icon } from './icons.tsx'
import { usePlace } from './place.ts'
import { useStore } from './store.ts'

/** The group of all agents, as the backend made it. */
const support = { user_id: '', role: 'agent', group: 'support', display_name: 'Support' }

/** Who can be called: everybody of the other role, with what the service tells of them. */
export function People({ desk }: { desk: Desk }) {
  const { mayCall, call } = usePlace()
  const { phase } = useCallUi()
  const title = useRef<HTMLHeadingElement>(null)
  // The page begins here for somebody who has just signed in, or has closed the end of a call that took the whole screen.
  useEffect(() => {
    if (phase === 'idle' && document.activeElement === document.body) title.current?.focus({ preventScroll: true })
  }, [phase])

  const people = useStore(desk.people)
  return (
    <section className="panel people" aria-labelledby="people-title">
      <h2 id="people-title" ref={title} tabIndex={-1}>
        People
      </h2>
      <ul className="rows" data-testid="people">
        {people?.map((person) => (
          <li
            key={`${person.role}/${person.user_id}`}
            className="person"
            data-testid="person"
            data-user={person.user_id}
            data-role={person.role}
            data-presence={presenceOf(person)}
            data-in-call={person.inCall ? '' : undefined}
          >
            <Avatar name={person.display_name} />
            <span className="presence" aria-hidden="true" />
            <span className="person-text">
              <span className="person-name" title={person.display_name}>
                {person.display_name}
              </span>
              <About parts={aboutOf(person)} />
            </span>
            {(['audio', 'video'] as const).map((type) => (
              <CallButton key={type} peer={person} type={type} disabled={!mayCall} onCall={call} />
            ))}
          </li>
        ))}
        {desk.identity.role === 'customer' && people && people.length > 0 && (
          <li className="person" data-testid="support">
            <Avatar name={support.display_name} />
            <span className="person-text">
              <span className="person-name">{support.display_name}</span>
              <About parts={['rings at all agents']} />
            </span>
            {(['audio', 'video'] as const).map((type) => (
              <CallButton key={type} peer={support} type={type} disabled={!mayCall} onCall={call} />
            ))}
          </li>
        )}
      </ul>
      <Nobody people={people} role={desk.identity.role === 'agent' ? 'customer' : 'agent'} />
    </section>
  )
}

/** What to do while there is nobody who would answer. It says nothing before that is known. */
function Nobody({ people, role }: { people: readonly Listed[] | undefined; role: string }) {
  if (!people) return <p className="empty">Looking for people …</p>
  if (people.some(({ online }) => online !== false)) return null
  return (
    <p className="empty" data-testid="nobody">
      {people.length === 0 ? 'Nobody to call yet. ' : 'Nobody is online right now. '}
      <a href="./" target="_blank" rel="noopener">
        Open a second window
      </a>
      {` and go online as ${role === 'agent' ? 'an agent' : 'a customer'}.`}
    </p>
  )
}

function presenceOf({ online }: Listed): 'online' | 'offline' | 'unknown' {
  return online === undefined ? 'unknown' : online ? 'online' : 'offline'
}

/** In its own words, and not just by a colour. A person who is in a call may have lost the connection for a moment. */
function aboutOf(person: Listed): string[] {
  const presence = presenceOf(person)
  const state = person.inCall ? 'in a call' : presence === 'unknown' ? '' : presence
  return [person.role, state].filter(Boolean)
}

function CallButton(props: {
  peer: Peer
  type: CallType
  disabled: boolean
  onCall(peer: Peer, type: CallType): void
}) {
  const { peer, type, disabled, onCall } = props
  const label = `${type === 'video' ? 'Video' : 'Audio'} call to ${peer.display_name}`
  return (
    <button
      type="button"
      className="call-button"
      data-type={type}
      aria-label={label}
      title={label}
      disabled={disabled}
      data-testid={`call-${type}`}
      onClick={() => onCall(peer, type)}
    >
      <Icon name={type === 'video' ? 'video' : 'phone'} />
    </button>
  )
}
