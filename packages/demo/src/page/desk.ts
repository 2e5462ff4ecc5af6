// One signed-in tab: its connection to the service and what its own backend tells. Components show it.

import { createCallClient } from '@ringwire/client'
import type { Person } from '../backend/people.ts'
import {
  type CallRecord,
  fetchHistory,
  fetchToken,
  type Identity,
  type Peer,
  reportLeave,
  reportOnline,
} from './backend.ts'
import { createLog } from './log.ts'
import { createLoggedSocket } from './logged-socket.ts'
import { createRing } from './ring.ts'
import { createStore } from './store.ts'

export function createDesk(identity: Identity) {
  const log = createLog()
  const ring = createRing()
  const me = createStore<Peer>({ user_id: '', role: identity.role, display_name: identity.name })
  const people = createStore<readonly Person[]>([])
  const history = createStore<readonly CallRecord[]>([])
  const note = createStore('')
  let token: string | undefined
  let lastStatus = ''

  // With `storage` a page that is loaded again goes on with its call.
  const client = createCallClient({
    async getToken() {
      const issued = await fetchToken(identity)
      me.set(issued.user)
      token = issued.token
      return issued
    },
    WebSocket: createLoggedSocket({ ...log, received }),
    storage: sessionStorage,
  })

  /** A call that has come to another status is another one in the history. */
  function received(message: string): void {
    const data = log.received(message).data as { call_uuid?: unknown; status?: unknown } | undefined
    if (typeof data?.status !== 'string') return
    const status = `${data.call_uuid} ${data.status}`
    if (status !== lastStatus) void readHistory()
    lastStatus = status
  }

  async function readHistory(): Promise<void> {
    if (token === undefined) return
    try {
      history.set(await fetchHistory(token, nameOf))
    } catch (error) {
      log.note(`No history: ${error instanceof Error ? error.message : 'unknown error'}`)
    }
  }

  /** The application knows its people, also those who have not answered yet. */
  function nameOf({ user_id, role }: { user_id: string; role: string }): string {
    const known = people.get().find((person) => person.user_id === user_id && person.role === role)
    return known?.display_name ?? user_id
  }

  async function beat(): Promise<void> {
    try {
      const answer = await reportOnline(identity)
      if (JSON.stringify(answer.people) !== JSON.stringify(people.get())) people.set(answer.people)
      // The toy backend was restarted and has forgotten who is online: fetching a token says it again.
      if (!answer.known) await fetchToken(identity)
    } catch {
      // The next beat tries again; the connection's own state is shown beside the name.
    }
  }

  function keepBeating(): void {
    let isUnderWay = false
    new Worker('pulse.js').addEventListener('message', async () => {
      if (isUnderWay) return
      isUnderWay = true
      await beat()
      isUnderWay = false
    })
  }

  client.on('state', (state) => {
    if (state.name === 'online') void readHistory()
    if (state.name !== 'closed' || !state.why.closeCode) return
    const why =
      state.why.code === 'replaced' ? 'Another connection took over this session.' : 'The service said goodbye.'
    note.set(`${why} Reload the page to come back.`)
  })
  client.on('error', ({ code, message }) => note.set(`${code}: ${message}`))
  client.on('calls', () => note.set(''))

  return {
    ...{ identity, client, log, ring, me, people, history, note },
    start(): void {
      client.connect()
      void beat()
      keepBeating()
      setInterval(() => void readHistory(), 60_000)
      window.addEventListener('pagehide', () => reportLeave(identity))
    },
    stop(): void {
      client.close()
      reportLeave(identity)
    },
  }
}

export type Desk = ReturnType<typeof createDesk>
