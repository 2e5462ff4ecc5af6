import { CallProvider, CallStage, IncomingDialog, RestorableCalls, useCallUi } from '@ringwire/ui'
import { useEffect, useState } from 'react'
import { useAlerts } from './alerts.ts'
import type { Desk } from './desk.ts'
import { Header } from './header.tsx'
import { History } from './history.tsx'
import { LogPanel } from './log-panel.tsx'
import { People } from './people.tsx'
import { useStore } from './store.ts'

const isRelayOnly = new URLSearchParams(location.search).get('relay') === '1'
/** Twice as often as the SDK does by itself: a picture that stands still is to be told soon. */
const media = {
  statsIntervalMs: 500,
  ...(isRelayOnly ? { configuration: { iceTransportPolicy: 'relay' as const } } : {}),
}

export function DeskView({ desk }: { desk: Desk }) {
  useEffect(() => {
    desk.start()
    for (const gesture of ['pointerdown', 'keydown']) window.addEventListener(gesture, desk.ring.unlock)
  }, [desk])
  return (
    <CallProvider client={desk.client} media={media}>
      <Board desk={desk} />
    </CallProvider>
  )
}

function Board({ desk }: { desk: Desk }) {
  const { phase, call } = useCallUi()
  // On a narrow screen the call and the people come first.
  const [isLogOpen, setLogOpen] = useState(() => matchMedia('(min-width: 1120px)').matches)
  useAlerts(desk.ring)
  useTestHandle()
  const records = useStore(desk.history)
  const connectedAt = records.find(({ call_uuid }) => call_uuid === call?.callUuid)?.connected_at
  const isInCall = call !== undefined && phase !== 'incoming'
  return (
    <div className="app" data-in-call={isInCall ? '' : undefined} data-log={isLogOpen ? '' : undefined}>
      <Header desk={desk} isRelayOnly={isRelayOnly} isLogOpen={isLogOpen} toggleLog={() => setLogOpen(!isLogOpen)} />
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
        {isLogOpen && <LogPanel log={desk.log} />}
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
        Pick someone and call. What passes over the wire shows in the log.
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
