import type { Person } from '../backend/people.ts'
import { type CallRecord, fetchHistory, type Identity, type Peer, reportLeave, reportOnline } from './backend.ts'
import { type Call, createCalls } from './calls.ts'
import { byId } from './dom.ts'
import type { Envelope } from './envelope.ts'
import { createHistoryView } from './history-view.ts'
import { createIncomingView } from './incoming-view.ts'
import { createLogPanel } from './log.ts'
import { createPeopleView } from './people-view.ts'
import type { Ring } from './ring.ts'
import { createSignaling, type SignalingState } from './signaling.ts'
import { createStageView } from './stage-view.ts'
import { createTokens } from './tokens.ts'

const heartbeatMs = 1000

export type SessionOptions = {
  identity: Identity
  /** This tab was signed in before: a call of its own may still be live. */
  reloaded: boolean
  relayOnly: boolean
  ring: Ring
}

/** One signed-in tab: ties the connection, the calls and the views together. It lasts until the page goes. */
export function createSession({ identity, reloaded, relayOnly, ring }: SessionOptions) {
  const title = document.title
  const log = createLogPanel(byId('log-list', HTMLElement), byId('log-clear', HTMLButtonElement))
  let iceServers: RTCIceServer[] = []
  let me: Peer = { user_id: '', role: identity.role, display_name: identity.name }
  let people: Person[] = []
  let renewalDue = false
  let mayResume = reloaded
  let shown: Call['phase'] | undefined
  let lastPeer: Peer | undefined
  let events: Promise<void> = Promise.resolve()

  const tokens = createTokens(identity, () => {
    // A call outlives the token of its socket [WS5]; the new token is shown to the service once it is over.
    renewalDue = true
    renewWhenIdle()
  })

  const signaling = createSignaling({
    token: async () => {
      const token = await tokens.current()
      iceServers = token.ice_servers
      me = token.user
      renewalDue = false
      return token
    },
    discardToken: tokens.discard,
    // One after another, and none before the history has been read after a connect.
    onEnvelope: (envelope) => {
      events = events.then(() => handle(envelope)).catch(reportError)
    },
    onState: renderState,
    log,
  })

  const calls = createCalls({
    send: signaling.send,
    rtc: () => ({ iceServers, iceTransportPolicy: relayOnly ? 'relay' : 'all' }),
    onChange: renderCall,
    onFacts: (call) => stage.renderFacts(call),
    onNote: log.note,
  })

  const stage = createStageView({
    hangUp: calls.hangUp,
    mute: () => calls.toggle('muted'),
    camera: () => calls.toggle('cameraOff'),
  })
  const incoming = createIncomingView(calls.accept, calls.hangUp)
  const peopleView = createPeopleView(byId('people', HTMLElement), byId('people-empty', HTMLElement), calls.invite)
  const historyView = createHistoryView(
    {
      list: byId('history', HTMLElement),
      empty: byId('history-empty', HTMLElement),
      missed: byId('missed', HTMLElement),
    },
    calls.resume,
  )

  async function handle(envelope: Envelope): Promise<void> {
    if (envelope.event !== 'auth.ok') return calls.handle(envelope)
    const records = await readHistory()
    if (records) calls.reconcile(records, mayResume)
    mayResume = false
  }

  async function readHistory(): Promise<CallRecord[] | undefined> {
    try {
      const records = await fetchHistory((await tokens.current()).token, nameOf)
      historyView.render(records, calls.current()?.uuid)
      return records
    } catch (error) {
      log.note(`No history: ${error instanceof Error ? error.message : 'unknown error'}`)
      return undefined
    }
  }

  /** The application knows its people, also those who have not answered yet. */
  function nameOf({ user_id, role }: { user_id: string; role: string }): string {
    const known = people.find((person) => person.user_id === user_id && person.role === role)
    return known?.display_name ?? user_id
  }

  function renewWhenIdle(): void {
    if (renewalDue && !calls.current()) signaling.renew()
  }

  function renderPeople(): void {
    peopleView.render(people, me, signaling.isOnline() && !calls.current())
  }

  function renderState(state: SignalingState): void {
    const words = { connecting: 'Connecting …', online: 'Online', waiting: 'Reconnecting …', stopped: 'Disconnected' }
    const chip = byId('connection', HTMLElement)
    chip.dataset.state = state.name
    byId('connection-text', HTMLElement).textContent = words[state.name]
    if (state.name === 'stopped') announce(`${state.why} Reload the page to come back.`)
    renderPeople()
  }

  function renderCall(call: Call | undefined, note: string): void {
    document.body.dataset.call = call?.phase ?? ''
    stage.render(call)
    incoming.render(call)
    renderPeople()
    if (call?.phase !== shown) phaseChanged(call)
    if (note) announce(note)
  }

  function phaseChanged(call: Call | undefined): void {
    const before = shown
    shown = call?.phase
    ring.stop()
    document.title = title
    if (call && !before) announce('')
    if (call?.phase === 'incoming') {
      ring.incoming()
      document.title = `☎ ${call.peer.display_name} calls`
      const what = `Incoming ${call.type} call from ${call.peer.display_name}, ${call.peer.role}.`
      byId('alert', HTMLElement).textContent = `${what} Enter accepts, Escape declines.`
    } else byId('alert', HTMLElement).textContent = ''
    if (call?.phase === 'calling') ring.outgoing()
    if (call) lastPeer = call.peer
    else if (lastPeer && before) {
      if (before !== 'incoming') peopleView.focus(lastPeer)
      renewWhenIdle()
    }
    void readHistory()
    // A hang-up has no answer in base mode, so the history may be read before it took effect.
    if (!call) setTimeout(readHistory, 1000)
  }

  function announce(note: string): void {
    byId('note', HTMLElement).textContent = note
  }

  async function heartbeat(): Promise<void> {
    try {
      const answer = await reportOnline(identity)
      people = answer.people
      renderPeople()
      if (!answer.known) {
        // The toy backend was restarted and has forgotten who is online: fetching a token says it again.
        tokens.discard()
        await tokens.current()
      }
    } catch {
      // The next heartbeat tries again; the connection's own state is shown beside the name.
    }
    setTimeout(heartbeat, heartbeatMs)
  }

  return {
    start(): void {
      signaling.start()
      // Fetching the token is what puts this tab online, so it comes before the first heartbeat.
      void tokens.current().then(heartbeat, heartbeat)
      setInterval(stage.tick, 500)
      setInterval(() => void readHistory(), 60_000)
      window.addEventListener('online', signaling.renew)
      window.addEventListener('pagehide', () => reportLeave(identity))
    },
    cancelCalling(): void {
      if (calls.current()?.phase === 'calling') calls.hangUp()
    },
    stop(): void {
      signaling.stop()
      tokens.stop()
      reportLeave(identity)
    },
    peerConnection: calls.connection,
  }
}
