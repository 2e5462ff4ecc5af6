import { createCalls } from './calls.ts'
import { createConnection } from './connection.ts'
import { type Environment, globalEnvironment } from './environment.ts'
import { check, listensTo, RingwireError } from './error.ts'
import { createListeners } from './listeners.ts'
import { type ClientWithParts, type News, parts } from './parts.ts'
import { createRenewal } from './renewal.ts'
import { createRequests } from './requests.ts'
import { createKeeper, createSession } from './session.ts'
import { hearEnvelope, hearIceServers, type Inside, sessionBegun, sessionLost } from './session-news.ts'
import { createTokens, type Tokens } from './tokens.ts'
import type { CallClient, CallClientOptions, ClientEvents } from './types.ts'

/** Builds a client; `connect()` starts it. Throws INVALID_ARGUMENT without a `getToken`. */
export function createCallClient(options: CallClientOptions): CallClient {
  return createClient(options, globalEnvironment(options?.WebSocket))
}

/** The same with everything that it takes from outside. */
export function createClient(options: CallClientOptions, env: Environment): CallClient {
  check(typeof options?.getToken === 'function', 'getToken', 'a function')
  const { requestTimeoutMs: timeoutMs = 10_000, connectTimeoutMs = 10_000 } = options
  const { rejected, ...listeners } = createClientListeners()
  const report = (error: RingwireError) => listeners.emit('error', error)
  const session = createSession(options.can)
  const keeper = createKeeper(options.storage, options.storageKey ?? 'ringwire', (cause) =>
    report(new RingwireError('REQUEST_FAILED', 'The storage refused.', { cause })),
  )
  const tokens = createTokens(env, options, connectTimeoutMs, (token) => hearIceServers(inside, token))
  const requests = createRequests(env, {
    timeoutMs,
    transmit: (text) => connection.send(text),
    renewToken: () => renewal.renew(),
  })
  const renewal = createRenewal(env, tokens, requests, report)
  const calls = createCalls({
    requests,
    listeners,
    env,
    rejected,
    self: () => connection.self() ?? null,
    client: () => client,
    connectionState: () => connection.state(),
    localTime: tokens.localTime,
  })
  const connection = createConnection(env, options, tokens, {
    query: () => session.query(requests.replied()),
    // The page that has the session may still be open.
    async prepare() {
      if (inside.visit !== 'copy') session.restore(await keeper.load())
    },
    begun: (data) => sessionBegun(inside, data),
    receive: (envelope) => hearEnvelope(inside, envelope),
    lost: (isFinal, cause) => sessionLost(inside, isFinal, cause),
    probe: renewal.probe,
    stateChanged(state) {
      listeners.emit('state', state)
      const { error } = state.why
      if (error && state.name !== 'connecting') report(error as RingwireError)
    },
  })
  const inside: Inside = {
    listeners,
    news: createListeners<News>(),
    session,
    keeper,
    requests,
    renewal,
    calls,
    connection,
    visit: env.visit(),
    isFresh: true,
    ice: { ice_servers: [] },
  }
  const client = createShown(inside, env, tokens)
  return client
}

/** The events of a client, and where its failures go. */
function createClientListeners() {
  const listeners = createListeners<ClientEvents>({
    admit: listensTo('state', 'incoming', 'restored', 'restorable', 'calls', 'iceServers', 'error'),
    rejected,
  })

  /** An expected failure that nobody listens for is not news. A bug of the application has to surface somewhere. */
  function rejected(cause: unknown): boolean {
    const isExpected = cause instanceof RingwireError
    if (!isExpected && !listeners.has('error')) return false
    const error = isExpected
      ? cause
      : new RingwireError('LISTENER_FAILED', "A listener's promise was rejected.", { cause })
    listeners.emit('error', error)
    return true
  }

  return { ...listeners, rejected }
}

/** What the application sees of a client. */
function createShown(inside: Inside, env: Environment, { localTime, current }: Tokens): ClientWithParts {
  const { connection, calls } = inside
  return {
    [parts]: {
      ask: inside.requests.ask,
      on: inside.news.on,
      live: calls.live,
      isNews: calls.isNews,
      add: calls.add,
      localTime,
    },
    get state() {
      return connection.state()
    },
    get calls() {
      return calls.shown.calls
    },
    get restorable() {
      return calls.shown.restorable
    },
    get iceServers() {
      return inside.ice.ice_servers
    },
    get iceTransportPolicy() {
      return inside.ice.ice_transport_policy
    },
    on: inside.listeners.on,
    find: calls.find,
    call: calls.place,
    wake: connection.wake,

    connect(): void {
      check(env.WebSocket, 'WebSocket', 'given: this runtime has none')
      connection.connect()
    },

    freshIceServers: () => current().then(() => inside.ice.ice_servers),

    close(): void {
      calls.hangUp()
      connection.close()
    },
  }
}
