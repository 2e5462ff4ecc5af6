import { useCallUi } from '@ringwire/ui'
import { type RefObject, useEffect, useRef } from 'react'
import { Avatar } from './avatar.tsx'
import type { CallType, Peer } from './backend.ts'
import type { Desk, Listed } from './desk.ts'
import { Icon } from './icons.tsx'
import { usePlace } from './place.ts'
import { useStore } from './store.ts'

/** Who can be called: everybody of the other role, with what the service tells of them. */
export function People({ desk }: { desk: Desk }) {
  const { mayCall, call } = usePlace()
  const list = useRef<HTMLUListElement>(null)
  const title = useRef<HTMLHeadingElement>(null)
  useFocusAfterCall(list)
  // Where the page begins for whoever has just signed in.
  useEffect(() => title.current?.focus({ preventScroll: true }), [])

  const people = useStore(desk.people)
  return (
    <section className="panel" aria-labelledby="people-title">
      <h2 id="people-title" ref={title} tabIndex={-1}>
        People
      </h2>
      <ul ref={list} className="rows" data-testid="people">
        {people.map((person) => (
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
              <span className="person-name">{person.display_name}</span>
              <span className="person-about">{aboutOf(person)}</span>
            </span>
            {(['audio', 'video'] as const).map((type) => (
              <CallButton key={type} peer={person} type={type} disabled={!mayCall} onCall={call} />
            ))}
          </li>
        ))}
      </ul>
      {!people.some(({ online }) => online) && (
        <p className="empty">
          Nobody to call yet.{' '}
          <a href="./" target="_blank" rel="noopener">
            Open a second window
          </a>{' '}
          and go online with the other role.
        </p>
      )}
    </section>
  )
}

function presenceOf({ online }: Listed): 'online' | 'offline' | 'unknown' {
  return online === undefined ? 'unknown' : online ? 'online' : 'offline'
}

/** In its own words, and not by a colour alone. Who is in a call may have lost the connection for a moment. */
function aboutOf(person: Listed): string {
  const presence = presenceOf(person)
  const state = person.inCall ? 'in a call' : presence === 'unknown' ? '' : presence
  return [person.role, state].filter(Boolean).join(' · ')
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

/** Puts the focus on the person whose call has ended, for who had it in the call. */
function useFocusAfterCall(list: RefObject<HTMLUListElement | null>): void {
  const { call, ended, phase } = useCallUi()
  const wasIn = useRef(false)
  useEffect(() => {
    if (call && phase !== 'incoming') wasIn.current = true
    if (!ended || !wasIn.current) return
    wasIn.current = false
    const { userId, role } = ended.call.peer
    const row = `[data-user="${CSS.escape(userId)}"][data-role="${CSS.escape(role)}"] button`
    list.current?.querySelector<HTMLElement>(row)?.focus({ preventScroll: true })
  }, [call, ended, phase, list])
}
