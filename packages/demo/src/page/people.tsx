import { useCallUi } from '@ringwire/ui'
import { type RefObject, useEffect, useRef } from 'react'
import type { Person } from '../backend/people.ts'
import { Avatar } from './avatar.tsx'
import type { CallType, Peer } from './backend.ts'
import type { Desk } from './desk.ts'
import { Icon } from './icons.tsx'
import { usePlace } from './place.ts'
import { useStore } from './store.ts'

/** Who is online. Whoever has the other role can be called. */
export function People({ desk }: { desk: Desk }) {
  const me = useStore(desk.me)
  const { mayCall, call } = usePlace()
  const list = useRef<HTMLUListElement>(null)
  const title = useRef<HTMLHeadingElement>(null)
  useFocusAfterCall(list)
  // Where the page begins for whoever has just signed in.
  useEffect(() => title.current?.focus({ preventScroll: true }), [])

  const isCallable = ({ role }: Person) => role !== me.role
  const others = useStore(desk.people)
    .filter(({ user_id, role }) => user_id !== me.user_id || role !== me.role)
    .sort((a, b) => Number(isCallable(b)) - Number(isCallable(a)))
  return (
    <section className="panel" aria-labelledby="people-title">
      <h2 id="people-title" ref={title} tabIndex={-1}>
        Online
      </h2>
      <ul ref={list} className="rows" data-testid="people">
        {others.map((person) => (
          <li
            key={`${person.role}/${person.user_id}`}
            className="person"
            data-testid="person"
            data-user={person.user_id}
            data-role={person.role}
          >
            <Avatar name={person.display_name} />
            <span className="person-text">
              <span className="person-name">{person.display_name}</span>
              <span className="person-about">{aboutOf(person, isCallable(person))}</span>
            </span>
            {isCallable(person) &&
              (['audio', 'video'] as const).map((type) => (
                <CallButton key={type} peer={person} type={type} disabled={!mayCall} onCall={call} />
              ))}
          </li>
        ))}
      </ul>
      {!others.some(isCallable) && (
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

function aboutOf({ role, devices }: Person, isCallable: boolean): string {
  return [role, devices > 1 && `${devices} devices`, !isCallable && 'same role'].filter(Boolean).join(' · ')
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
