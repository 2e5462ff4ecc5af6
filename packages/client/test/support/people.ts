import { overdue } from '@ringwire/testkit/patience'
import type { Service, TokenWish } from '@ringwire/testkit/service'
import { createClient } from '../../src/client.ts'
import { globalEnvironment } from '../../src/environment.ts'
import type { Call, CallClient, CallClientOptions, CallState, ConnectionState, TokenReason } from '../../src/types.ts'

/** Somebody with a client of the SDK; what it told is kept. */
export interface Person {
  readonly userId: string
  readonly role: 'customer' | 'agent'
  readonly client: CallClient
  /** Why the client asked for tokens, one entry each. */
  readonly tokens: TokenReason[]
  readonly states: ConnectionState[]
  readonly incoming: Call[]
  readonly restored: Call[]
}

export interface PersonOptions extends Partial<CallClientOptions> {
  readonly wish?: Partial<TokenWish>
  /** The clock of the device. */
  readonly now?: () => number
}

/** How long a test waits for something that should come. A bound for failures, never a pace. */
const patienceMs = 30_000

/** Quick enough for tests; everything else as it is shipped. */
const quick = { reconnectBaseMs: 20, reconnectMaxMs: 200 }

export function person(
  service: Service,
  userId: string,
  role: Person['role'],
  { wish, now = Date.now, ...options }: PersonOptions = {},
): Person {
  const tokens: TokenReason[] = []
  const getToken = (reason: TokenReason) => {
    tokens.push(reason)
    return service.issue({ user_id: userId, role, ...wish })
  }
  const environment = Object.defineProperty(globalEnvironment(options.WebSocket), 'now', { value: now })
  const client = createClient({ getToken, ...quick, ...options }, environment)
  const it = {
    userId,
    role,
    client,
    tokens,
    states: [] as ConnectionState[],
    incoming: [] as Call[],
    restored: [] as Call[],
  }
  client.on('state', (state) => it.states.push(state))
  client.on('incoming', (call) => it.incoming.push(call))
  client.on('restored', (call) => it.restored.push(call))
  // No person has to agree.
  client.on('restorable', (calls) => {
    for (const call of calls) it.restored.push(call.resume())
  })
  return it
}

/** A condition that becomes true by itself, looked at whenever the client said something. */
export async function until<T>(what: string, client: CallClient, read: () => T | undefined | false): Promise<T> {
  const now = read()
  if (now !== undefined && now !== false) return now
  return new Promise((resolve, reject) => {
    const ends: (() => void)[] = []
    const look = () => {
      for (const call of client.calls) if (!watched.has(call)) watch(call)
      const value = read()
      if (value === undefined || value === false) return
      cancel()
      for (const end of ends) end()
      resolve(value)
    }
    const watched = new Set<Call>()
    const watch = (call: Call) => {
      watched.add(call)
      ends.push(call.on('state', look), call.on('resynced', look), call.on('alerting', look), call.on('peer', look))
    }
    const cancel = overdue(patienceMs, () => {
      for (const end of ends) end()
      const calls = client.calls.map(({ state }) => JSON.stringify(state))
      reject(new Error(`waited for ${what}; it is ${JSON.stringify(client.state)}, calls: ${calls.join(' ')}`))
    })
    ends.push(
      client.on('state', look),
      client.on('calls', look),
      client.on('incoming', look),
      client.on('restored', look),
      client.on('restorable', look),
    )
    look()
  })
}

/** The client has a socket and its `auth.ok`; `after`: not the one that it has now. */
export async function online(it: Person): Promise<Extract<ConnectionState, { name: 'online' }>> {
  it.client.connect()
  return until('online', it.client, () => it.client.state.name === 'online' && it.client.state)
}

/** The next time it is online after this moment. */
export function backOnline(it: Person): Promise<Extract<ConnectionState, { name: 'online' }>> {
  const before = it.client.state
  return until('online again', it.client, () => {
    const { state } = it.client
    return state.name === 'online' && state !== before && state
  })
}

export function stateOf<N extends CallState['name']>(call: Call, name: N): Promise<Extract<CallState, { name: N }>> {
  return new Promise((resolve, reject) => {
    const look = () => {
      if (call.state.name !== name) return
      cancel()
      end()
      resolve(call.state as Extract<CallState, { name: N }>)
    }
    const cancel = overdue(patienceMs, () =>
      reject(new Error(`waited for ${name}; the call is ${JSON.stringify(call.state)}`)),
    )
    const end = call.on('state', look)
    look()
  })
}

export function ringing(it: Person, callUuid?: string): Promise<Call> {
  return until('a call that rings', it.client, () =>
    it.client.calls.find(
      (call) =>
        call.state.name === 'ringing' &&
        call.direction === 'incoming' &&
        (callUuid === undefined || call.callUuid === callUuid),
    ),
  )
}

/** Invited, rung and answered; both sides have heard of it. */
export async function talk(caller: Person, callee: Person): Promise<{ out: Call; in: Call }> {
  const out = caller.client.call({ userId: callee.userId, role: callee.role })
  await out.invited
  const incoming = await ringing(callee, out.callUuid)
  await incoming.accept()
  await stateOf(out, 'accepted')
  return { out, in: incoming }
}

/** The next payload of an event of a call. */
export function next<E extends 'offer' | 'answer' | 'candidate' | 'resynced' | 'glare' | 'alerting' | 'status'>(
  call: Call,
  event: E,
) {
  return new Promise<Parameters<Parameters<typeof call.on<E>>[1]>[0]>((resolve, reject) => {
    const cancel = overdue(patienceMs, () => reject(new Error(`waited for ${event}`)))
    const end = call.on(event, (payload) => {
      cancel()
      end()
      resolve(payload)
    })
  })
}
