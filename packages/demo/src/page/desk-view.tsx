import { CallProvider, CallStage, CallTones, IncomingDialog, RestorableCalls, useCallUi } from '@ringwire/ui'
import { useEffect, useState } from 'react'
import { useAlerts } from './alerts.ts'
import type { Desk } from './desk.ts'
import { Header } from './header.tsx'
import { History } from './history.tsx'
import { LogPanel } from './log-panel.tsx'
import { Note } from './note.tsx'
import { People } from './people.tsx'
import { useStore } from './store.ts'

const isRelayOnly = new URLSearchParams(location.search).get('relay') === '1'
/** Twice as often as the SDK does by itself: a picture that stands still is to be told soon. */
const media = {
  statsIntervalMs: 500,
  ...(isRelayOnly ? { configuration: { iceTransportPolicy: 'relay' as const } } : {}),
}

export function DeskView({ desk }: { desk: Desk }) {
  useEffect(() => desk.start(), [desk])
  return (
    <CallProvider client={desk.client} media={media}>
      <CallTones />
      <Board desk={desk} />
    </CallProvider>
  )
}

function Board({ desk }: { desk: Desk }) {
  const { phase, call, ended } = useCallUi()
  const isInCall = call !== undefined && phase !== 'incoming'
  // During a call the picture has all the room, until somebody asks for the log.
  const [log, setLog] = useState(() => ({ idle: matchMedia('(min-width: 1120px)').matches, call: false }))
  const now = isInCall ? 'call' : 'idle'
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
      data-log={log[now] ? '' : undefined}
    >
      <Header
        desk={desk}
        isRelayOnly={isRelayOnly}
        isLogOpen={log[now]}
        toggleLog={() => setLog({ ...log, [now]: !log[now] })}
      />
      <Note desk={desk} />
      <main className="board">
        <div className="side">
          <RestorableCalls className="panel" />
          <People desk={desk} />
          <History desk={desk} />
        </div>
        <CallStage
          className="stage"
          keys
          details
          idle={<Idle />}
          since={connectedAt ? Date.parse(connectedAt) : undefined}
        />
        {(log.idle || log.call) && <LogPanel log={desk.log} isShown={log[now]} />}
      </main>
      <IncomingDialog />
    </div>
  )
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
        Choose a person and start a call. The log shows every message of it.
      </p>
    </div>
  )
}

/** For the browser tests alone: they read getStats of the connection that carries the call. */
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
