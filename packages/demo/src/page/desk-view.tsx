import {
  CallProvider,
  CallStage,
  CallTones,
  IncomingDialog,
  RestorableCalls,
  TakeableCalls,
  TransferButton,
  useCallUi,
} from '@ringwire/ui'
import { useEffect, useState } from 'react'
import { useAlerts } from './alerts.ts'
import type { Desk } from './desk.ts'
import { Header } from './header.tsx'
import { History } from './history.tsx'
import { Icon } from './icons.tsx'
import { LogPanel } from './log-panel.tsx'
import { Note } from './note.tsx'
import { People } from './people.tsx'
import { useStore } from './store.ts'

const isRelayOnly = new URLSearchParams(location.search).get('relay') === '1'
/** Twice as often as the SDK does by itself: a picture that stands still has to be noticed soon. */
const media = {
  statsIntervalMs: 500,
  ...(isRelayOnly ? { configuration: { iceTransportPolicy: 'relay' as const } } : {}),
}

export function DeskView({ desk }: { desk: Desk }) {
  useEffect(() => desk.start(), [desk])
  return (
    <CallProvider client={desk.client} media={media} busy="wait" transfers={desk.transfers}>
      <CallTones />
      <Board desk={desk} />
    </CallProvider>
  )
}

function Board({ desk }: { desk: Desk }) {
  const { phase, call, ended } = useCallUi()
  const isInCall = call !== undefined && phase !== 'incoming'
  const log = useLogOpen(isInCall)
  useAlerts()
  useTestHandle()
  const records = useStore(desk.history)
  const shown = call ?? ended?.call
  const connectedAt = records.find(({ call_uuid }) => call_uuid === shown?.callUuid)?.connected_at
  return (
    <div
      className="app"
      data-in-call={isInCall ? '' : undefined}
      data-over={ended ? '' : undefined}
      data-log={log.isOpen ? '' : undefined}
    >
      <Header desk={desk} isRelayOnly={isRelayOnly} isLogOpen={log.isOpen} toggleLog={log.toggle} />
      <Note desk={desk} />
      <main className="board">
        <div className="side">
          <RestorableCalls className="panel" />
          <TakeableCalls className="panel" />
          <People desk={desk} />
          <History desk={desk} />
        </div>
        <CallStage
          className="stage"
          keys
          details
          securityCode
          controls={desk.identity.role === 'agent' ? <TransferButton search={colleaguesOf(desk)} /> : null}
          idle={<Idle />}
          since={connectedAt ? Date.parse(connectedAt) : undefined}
        />
        {log.isRendered && <LogPanel log={desk.log} isShown={log.isOpen} />}
      </main>
      <IncomingDialog />
    </div>
  )
}

/** To whom an agent may hand a call over, as the dialog lists them. */
const colleaguesOf = (desk: Desk) => (text: string) =>
  desk.colleagues(text).map(({ user_id: userId, role, display_name: displayName }) => ({ userId, role, displayName }))

/**
 * During a call the picture has all the room, until the user opens the log. A log that was opened in a call stays open when
 * the call ends, and in the next one.
 */
function useLogOpen(isInCall: boolean) {
  const [open, setOpen] = useState(() => ({ idle: matchMedia('(min-width: 1120px)').matches, call: false }))
  const isOpen = open.call || (open.idle && !isInCall)
  return {
    isOpen,
    /** It also keeps what the user opened in it while a call hides it. */
    isRendered: open.idle || open.call,
    toggle(): void {
      if (isInCall) setOpen({ ...open, call: !isOpen })
      else setOpen({ idle: !isOpen, call: false })
    },
  }
}

function Idle() {
  return (
    <div className="idle">
      <div className="rings" aria-hidden="true">
        <i />
        <i />
        <i />
        <img src="icon.svg" alt="" width="72" height="72" />
      </div>
      <p>
        <strong>Ready when you are</strong>
        Choose a person and start a call.
        <span className="idle-log">
          {'The button '}
          <Icon name="log" />
          {' above opens the log of its messages, also during the call.'}
        </span>
      </p>
    </div>
  )
}

/** Only for the browser tests: they read getStats of the connection that carries the call. */
function useTestHandle(): void {
  const { media } = useCallUi()
  useEffect(() => {
    const value = {
      get peerConnection() {
        return media?.connection
      },
    }
    Object.defineProperty(window, 'ringwireDemo', { value, configurable: true })
  }, [media])
}
