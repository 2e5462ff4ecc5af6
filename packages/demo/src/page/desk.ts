// One signed-in tab: its connection to the service and what its own backend tells. Components show it.

import { createCallClient } from '@ringwire/client'
import { createPresence, type PeerPresence, type Presence } from '@ringwire/client/presence'
import { takeCapabilities } from '@ringwire/client/take'
import { createTransfers, transferCapabilities } from '@ringwire/client/transfer'
import { errorText } from '@ringwire/ui'
import type { Person } from '../backend/people.ts'
import { type CallRecord, fetchHistory, fetchPeople, fetchToken, type Identity } from './backend.ts'
import { createLog } from './log.ts'
import { createLoggedSocket } from './logged-socket.ts'
import { createStore } from './store.ts'

/** Who may be called, and what the service says of them. */
export type Listed = Person & Pick<PeerPresence, 'online' | 'inCall'>

/**
 * How often the page asks this person's backend for new people. What becomes of those that are known, the service tells.
 * In ms.
 */
const peopleMs = 1_000

export function createDesk(identity: Identity) {
  const log = createLog()
  const history = createStore<readonly CallRecord[]>([])
  const note = createStore('')
  let token: string | undefined
  let lastStatus = ''

  // A client of the service as any other: it shares the client's connection.
  const presence = createPresence({ WebSocket: createLoggedSocket({ ...log, received }) })

  const people = createPeople(identity, presence)

  // With `storage` a page that is loaded again goes on with its call.
  const client = createCallClient({
    async getToken() {
      const issued = await fetchToken(identity)
      token = issued.token
      return issued
    },
    WebSocket: presence.WebSocket,
    storage: sessionStorage,
    can: [...takeCapabilities, ...transferCapabilities, 'group'],
  })
  const transfers = createTransfers(client)

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
      history.set(await fetchHistory(token, people.nameOf))
    } catch (error) {
      log.note(`No history: ${error instanceof Error ? error.message : 'unknown error'}`)
    }
  }

  presence.on('error', (error) => note.set(errorText(error)))
  client.on('state', (state) => {
    if (state.name === 'online') {
      note.set('')
      void readHistory()
    }
    if (state.name !== 'closed' || !state.why.closeCode) return
    const why =
      state.why.code === 'replaced' ? 'This page is open somewhere else.' : 'The service has closed the connection.'
    note.set(`${why} Reload this page to go on here.`)
  })
  client.on('error', (error) => note.set(errorText(error)))
  client.on('calls', () => note.set(''))

  return {
    ...{ identity, client, transfers, log, people: people.listed, colleagues: people.colleagues, history, note },
    start(): void {
      client.connect()
      void people.keepReading()
      setInterval(() => void readHistory(), 60_000)
    },
    stop: () => client.close(),
  }
}

export type Desk = ReturnType<typeof createDesk>

/** The people of the application, also those who have not answered yet; `presence` says who of them is there. */
function createPeople(identity: Identity, presence: Presence) {
  /** Undefined until it is known who there is. */
  const listed = createStore<readonly Listed[] | undefined>(undefined)
  let known: readonly Person[] = []
  let colleagues: readonly Person[] = []

  presence.on('change', (peers) => {
    listed.set(
      known.map((person) => {
        const peer = peers.find(({ userId, role }) => userId === person.user_id && role === person.role)
        return { ...person, online: peer?.online, inCall: peer?.inCall }
      }),
    )
  })

  async function read(): Promise<void> {
    try {
      const { people: found, colleagues: others } = await fetchPeople(identity)
      colleagues = others
      if (found.length === 0) listed.set([])
      if (JSON.stringify(found) === JSON.stringify(known)) return
      known = found
      presence.watch(known.map(({ role, user_id: userId }) => ({ role, userId })))
    } catch {
      // The next time it is there again; the connection's own state is shown beside the name.
    }
  }

  async function keepReading(): Promise<void> {
    await read()
    setTimeout(() => void keepReading(), peopleMs)
  }

  return {
    listed,
    /** Whose name has the text in it. */
    colleagues: (text: string): readonly Person[] =>
      colleagues.filter(({ display_name }) => display_name.toLowerCase().includes(text.toLowerCase())),
    keepReading,
    nameOf({ user_id, role }: { user_id: string; role: string }): string {
      const known = listed.get()?.find((person) => person.user_id === user_id && person.role === role)
      return known?.display_name ?? user_id
    },
  }
}
