/** The parts of both pages. */
import { useCallClient } from '@ringwire/client/react'
import {
  CallProvider,
  CallStage,
  english,
  IncomingDialog,
  RestorableCalls,
  TakeableCalls,
  TransferButton,
  type TransferChoice,
  type Words,
} from '@ringwire/ui'
import '@ringwire/ui/ui.css'
import { type ReactNode, useEffect, useMemo, useState } from 'react'
import { client, type Desk, type DeskCall, type Person, signOut, transfers, watchDesk } from './backend.ts'
import { agentWords, clockText, connectionText, outcomeText, type Side, sidesOf, waitText } from './words.ts'

export function Avatar({ name }: { name: string }) {
  const hue = [...name].reduce((sum, char) => sum + (char.codePointAt(0) ?? 0) * 47, 0) % 360
  return (
    <span className="avatar" style={{ background: `hsl(${hue} 45% 33%)` }} aria-hidden="true">
      {name.slice(0, 1)}
    </span>
  )
}

/** The page of a signed-in user: the user, what is wrong, the call, and the column next to it. */
export function Page({ user, desk, idle, children, onLeave }: PageProps) {
  const { state } = useCallClient(client)
  useEffect(() => client.connect(), [])
  const problem = connectionText(state) ?? (desk?.reachable === false ? unreachable : undefined)
  const hours = desk?.hours.isOpen === false ? desk.hours.text : undefined
  const words = useMemo(() => wordsWith(hours), [hours])
  const leave = async () => {
    await onLeave?.()
    await signOut()
  }
  return (
    // A second call shows during the first one, which can be put on hold for it.
    <CallProvider client={client} busy="wait" transfers={transfers} words={words}>
      <header>
        <Avatar name={user.display_name} />
        <p className="what">
          <strong>{user.display_name}</strong>
          <span>{user.about}</span>
        </p>
        <p className="connection" role="status" data-state={state.name}>
          {state.name === 'online' ? 'Connected' : 'Not connected'}
        </p>
        <button type="button" className="quiet" id="sign-out" onClick={() => void leave()}>
          Sign out
        </button>
      </header>
      <main className="desk">
        {problem !== undefined && (
          <p className="banner" role="alert">
            {problem}
          </p>
        )}
        <div className="stage">
          <RestorableCalls />
          <TakeableCalls />
          <CallStage
            keys
            securityCode
            idle={idle}
            controls={user.role === 'agent' && <TransferButton search={(text) => colleaguesOf(user, desk, text)} />}
          />
        </div>
        <div className="side">{children}</div>
      </main>
      <IncomingDialog />
    </CallProvider>
  )
}

interface PageProps {
  user: Person
  desk: Desk | undefined
  /** The stage without a call. */
  idle: ReactNode
  children: ReactNode
  /** Before somebody signs out. */
  onLeave?(): Promise<void>
}

/** Whom an agent can ask, or hand a call over to. */
function colleaguesOf(user: Person, desk: Desk | undefined, text: string): TransferChoice[] {
  const found = desk?.agents.filter(
    ({ user_id, display_name }) =>
      user_id !== user.user_id && display_name.toLowerCase().startsWith(text.toLowerCase()),
  )
  return (found ?? []).map(({ user_id: userId, display_name: displayName, state }) => ({
    ...{ userId, role: 'agent', displayName, about: agentWords[state] },
  }))
}

/** The backend refuses calls while the line is closed (`hours` is given then), and if nobody is free. */
function wordsWith(hours: string | undefined): Partial<Words> {
  const refused = hours === undefined ? 'Nobody is free.' : `We are closed now. You reach us ${hours}.`
  return { over: (ended) => (ended.state.error?.code === 'CALL_REFUSED' ? refused : english.over(ended)) }
}

const unreachable = 'Ringwire does not answer the backend. Who is there may be out of date.'

/** Undefined before the first news, and while there are none. */
export function useDesk(): Desk | undefined {
  const [desk, setDesk] = useState<Desk>()
  useEffect(() => watchDesk(setDesk), [])
  return desk
}

/** Rows of something, or a sentence where there is nothing; nothing at all before it is known. */
export function List({ title, empty, count, children }: ListProps) {
  return (
    <section className="card">
      <h2>
        {title}
        {count ? <span className="count">{count}</span> : null}
      </h2>
      {count === 0 ? <p className="empty">{empty}</p> : <ul className="rows">{children}</ul>}
    </section>
  )
}

interface ListProps {
  title: string
  empty: string
  /** Undefined: not known yet. */
  count: number | undefined
  children: ReactNode
}

/** A call that rings or goes on. */
export function LiveRow({ call, note }: { call: DeskCall; note: string }) {
  const now = useNow()
  const { customer } = sidesOf(call)
  return (
    <li className="row" data-call={call.call_uuid}>
      <Avatar name={customer.display_name} />
      <span className="what">
        <strong>{customer.display_name}</strong>
        <span>{note}</span>
      </span>
      <span className="clock">{clockText(now - Date.parse(call.accepted_at ?? call.started_at))}</span>
    </li>
  )
}

export function History({ desk, side }: { desk: Desk | undefined; side: Side }) {
  return (
    <List title="Last calls" empty="No calls yet." count={desk?.history.length}>
      {desk?.history.map((call) => {
        const { text, tone } = outcomeText(call, side)
        return (
          <li key={call.call_uuid} className="row" data-call={call.call_uuid} data-tone={tone}>
            <Avatar name={side(call).display_name} />
            <span className="what">
              <strong>{side(call).display_name}</strong>
              <span>{text}</span>
            </span>
            <time dateTime={call.started_at}>{waitText(call.started_at)}</time>
          </li>
        )
      })}
    </List>
  )
}

/** Anew each second. */
export function useNow(): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [])
  return now
}
