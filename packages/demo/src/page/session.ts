import type { ConnectionState } from '@ringwire/client/types'
import type { Person } from '../backend/people.ts'
import { fetchHistory, fetchToken, type Identity, type Peer, reportLeave, reportOnline } from './backend.ts'
import { byId } from './dom.ts'
import { createHistoryView } from './history-view.ts'
import { createIncomingView } from './incoming-view.ts'
import { createLogPanel } from './log.ts'
import { createLoggedSocket } from './logged-socket.ts'
import { createPeopleView } from './people-view.ts'
import { createPhone, type Line, type Over, type Phase, peerOf } from './phone.ts'
import type { Ring } from './ring.ts'
import { createStageView } from './stage-view.ts'
import { overText } from './wording.ts'

/** How the page writes the SDK's states. */
const connectionWords = {
  idle: { state: 'connecting', text: 'Connecting …' },
  connecting: { state: 'connecting', text: 'Connecting …' },
  online: { state: 'online', text: 'Online' },
  waiting: { state: 'waiting', text: 'Reconnecting …' },
  closed: { state: 'stopped', text: 'Disconnected' },
} as const

export type SessionOptions = {
  identity: Identity
  relayOnly: boolean
  ring: Ring
}

/** One signed-in tab: ties the phone to the views. It lasts until the page goes. */
export function createSession({ identity, relayOnly, ring }: SessionOptions) {
  const title = document.title
  const log = createLogPanel(byId('log-list', HTMLElement), byId('log-clear', HTMLButtonElement))
  let me: Peer = { user_id: '', role: identity.role, display_name: identity.name }
  let token: string | undefined
  let people: Person[] = []
  let shown: Phase | undefined

  const phone = createPhone({
    async getToken() {
      const issued = await fetchToken(identity)
      me = issued.user
      token = issued.token
      return issued
    },
    WebSocket: createLoggedSocket(log),
    relayOnly,
    onState: renderState,
    onLine: renderLine,
    onOver: over,
    onHungUp: readHistory,
    onStats: (stats) => stage.renderStats(stats),
    onNote: announce,
  })

  const stage = createStageView({
    hangUp: phone.hangUp,
    mute: () => phone.toggle('audio'),
    camera: () => phone.toggle('video'),
  })
  const incoming = createIncomingView(phone.accept, phone.hangUp)
  const peopleView = createPeopleView(byId('people', HTMLElement), byId('people-empty', HTMLElement), phone.call)
  const historyView = createHistoryView({
    list: byId('history', HTMLElement),
    empty: byId('history-empty', HTMLElement),
    missed: byId('missed', HTMLElement),
  })

  async function readHistory(): Promise<void> {
    if (token === undefined) return
    try {
      const records = await fetchHistory(token, nameOf)
      historyView.render(records)
      const current = records.find(({ call_uuid }) => call_uuid === phone.line()?.call.callUuid)
      if (current?.connected_at) phone.hasLastedSince(Date.parse(current.connected_at))
    } catch (error) {
      log.note(`No history: ${error instanceof Error ? error.message : 'unknown error'}`)
    }
  }

  /** The application knows its people, also those who have not answered yet. */
  function nameOf({ user_id, role }: { user_id: string; role: string }): string {
    const known = people.find((person) => person.user_id === user_id && person.role === role)
    return known?.display_name ?? user_id
  }

  function renderPeople(): void {
    peopleView.render(people, me, phone.isOnline() && !phone.line())
  }

  function renderState(state: ConnectionState): void {
    const words = connectionWords[state.name]
    byId('connection', HTMLElement).dataset.state = words.state
    byId('connection-text', HTMLElement).textContent = words.text
    if (state.name === 'closed' && state.why.closeCode) {
      const why =
        state.why.code === 'replaced' ? 'Another connection took over this session.' : 'The service said goodbye.'
      announce(`${why} Reload the page to come back.`)
    }
    if (state.name === 'online') void readHistory()
    renderPeople()
  }

  function renderLine(line: Line | undefined): void {
    document.body.dataset.call = line?.phase ?? ''
    stage.render(line)
    incoming.render(line)
    renderPeople()
    if (line?.phase !== shown) phaseChanged(line)
  }

  function phaseChanged(line: Line | undefined): void {
    if (line && !shown) announce('')
    shown = line?.phase
    ring.stop()
    document.title = title
    byId('alert', HTMLElement).textContent = ''
    if (line?.phase === 'calling') ring.outgoing()
    if (line?.phase === 'incoming') {
      const { display_name, role } = peerOf(line)
      ring.incoming()
      document.title = `☎ ${display_name} calls`
      const what = `Incoming ${line.call.callType} call from ${display_name}, ${role}.`
      byId('alert', HTMLElement).textContent = `${what} Enter accepts, Escape declines.`
    }
    void readHistory()
  }

  function over(line: Line, state: Over): void {
    announce(overText(state, peerOf(line), line.call.direction, me))
    if (line.phase !== 'incoming') peopleView.focus(peerOf(line))
  }

  function announce(note: string): void {
    byId('note', HTMLElement).textContent = note
  }

  async function heartbeat(): Promise<void> {
    try {
      const answer = await reportOnline(identity)
      people = answer.people
      renderPeople()
      // The toy backend was restarted and has forgotten who is online: fetching a token says it again.
      if (!answer.known) await fetchToken(identity)
    } catch {
      // The next heartbeat tries again; the connection's own state is shown beside the name.
    }
  }

  function keepBeating(): void {
    let isUnderWay = false
    new Worker('pulse.js').addEventListener('message', async () => {
      if (isUnderWay) return
      isUnderWay = true
      await heartbeat()
      isUnderWay = false
    })
  }

  return {
    start(): void {
      phone.start()
      void heartbeat()
      keepBeating()
      setInterval(stage.tick, 500)
      setInterval(() => void readHistory(), 60_000)
      window.addEventListener('pagehide', () => reportLeave(identity))
    },
    cancelCalling(): void {
      if (phone.line()?.phase === 'calling') phone.hangUp()
    },
    stop(): void {
      phone.stop()
      reportLeave(identity)
    },
    peerConnection: () => phone.line()?.media?.connection,
  }
}
