import type { ExtendedAuthOk } from '@ringwire/protocol/events/auth'
import type { IceServer } from '@ringwire/protocol/rest'
import { createCalls } from './calls.ts'
import { createConnection } from './connection.ts'
import { type Environment, globalEnvironment } from './environment.ts'
import { check, errorFromWire, listensTo, RingwireError } from './error.ts'
import { createListeners } from './listeners.ts'
import { type ClientWithParts, type News, parts } from './parts.ts'
import { createRenewal } from './renewal.ts'
import { createRequests } from './requests.ts'
import { createKeeper, createSession } from './session.ts'
import { createTokens } from './tokens.ts'
import type {
  CallClient,
  CallClientOptions,
  ClientEvents,
  RingwireErrorShape,
  SessionToken,
  Unsubscribe,
} from './types.ts'
import type { Envelope, Push } from './wire.ts'

type IceServersGiven = Pick<SessionToken, 'ice_servers' | 'ice_transport_policy'>

/** Builds a client; `connect()` starts it. Throws INVALID_ARGUMENT without a `getToken`. */
export function createCallClient(options: CallClientOptions): CallClient {
  return createClient(options, globalEnvironment(options?.WebSocket))
}

/** The same with everything that it takes from outside. */
export function createClient(options: CallClientOptions, env: Environment): CallClient {
  check(typeof options?.getToken === 'function', 'getToken', 'a function')
  const { requestTimeoutMs = 10_000, connectTimeoutMs = 10_000 } = options
  const listeners = createListeners<ClientEvents>({
    admit: listensTo('state', 'incoming', 'restored', 'restorable', 'calls', 'iceServers', 'error'),
    rejected,
  })
  const news = createListeners<News>()
  const session = createSession(options.can)
  /** This page had no socket yet: what it finds in its session is new to it. */
  let isFresh = true
  /** How this page came to be: the first session that it begins has to do with it, no later one. */
  let visit = env.visit()
  let endListening: Unsubscribe = () => {}
  /** The last ICE servers from the service: by the token, or by a push [EXT5]. */
  let iceServers: readonly IceServer[] = []
  /** Came with them [PRIV1]. */
  let iceTransportPolicy: 'relay' | undefined

  const report = (error: RingwireError) => listeners.emit('error', error)

  /** An expected failure that nobody listens for is not news. A bug of the application has to surface somewhere. */
  function rejected(cause: unknown): boolean {
    const isExpected = cause instanceof RingwireError
    if (!isExpected && !listeners.has('error')) return false
    report(isExpected ? cause : new RingwireError('LISTENER_FAILED', "A listener's promise was rejected.", { cause }))
    return true
  }

  const keeper = createKeeper(options.storage, options.storageKey ?? 'ringwire', (cause) =>
    report(new RingwireError('REQUEST_FAILED', 'The storage refused.', { cause })),
  )
  const tokens = createTokens(env, options, connectTimeoutMs, setIceServers)
  const requests = createRequests(env, {
    timeoutMs: requestTimeoutMs,
    transmit: (text) => connection.send(text),
    renewToken: () => renewal.renew(),
  })
  const renewal = createRenewal(env, tokens, requests, report)
  const calls = createCalls({
    requests,
    listeners,
    env,
    self: () => connection.self() ?? null,
    client: () => client,
    rejected,
    connectionState: () => connection.state(),
    localTime: tokens.localTime,
  })

  function setIceServers({ ice_servers, ice_transport_policy }: IceServersGiven): void {
    if (!ice_servers) return
    iceServers = ice_servers
    iceTransportPolicy = ice_transport_policy
    listeners.emit('iceServers', iceServers)
  }

  /** Goes on with what the previous page left, unless that page may still be open. */
  async function prepare(): Promise<void> {
    if (visit !== 'copy') session.restore(await keeper.load())
  }

  const save = () => keeper.save(session.snapshot(requests.replied()))

  function begun(data: ExtendedAuthOk): void {
    const wasFresh = isFresh
    isFresh = false
    const rejoins = visit === 'reload'
    visit = 'return'
    session.began(data)
    news.emit('active', data.active_calls)
    if (data.recovered) {
      requests.resumed(data.handled)
      calls.recovered(data.active_calls)
      if (wasFresh) calls.adopt(data.active_calls, false, rejoins)
    } else {
      requests.restarted()
      calls.reconcile(data.active_calls, true, rejoins)
      requests.resumed(0)
    }
    // Listeners may have closed the client meanwhile.
    if (connection.state().name !== 'online') return
    renewal.start()
    save()
  }

  function receive(envelope: Envelope): boolean {
    if (envelope.request_id !== undefined) reply(envelope.request_id, envelope)
    else if (envelope.event === 'session.reset') reset(envelope)
    else if (envelope.seq !== undefined) {
      const order = session.see(envelope.seq)
      if (order === 'gap') return false
      if (order === 'next') take(envelope as unknown as Push)
    } else if (envelope.event === 'call.error') report(errorFromWire(envelope.error))
    // A relay that went past the log: the store of the logs was away [EXT3].
    else if ('from_role' in envelope.data) take(envelope as unknown as Push)
    save()
    return true
  }

  function reply(id: string, { event, error, data }: Envelope): void {
    const isError = event === 'call.error'
    requests.answer(id, isError ? { ok: false, error: errorFromWire(error) } : { ok: true, data: data as never })
  }

  function take(push: Push): void {
    news.emit('push', push)
    if (push.event === 'ice.servers') setIceServers(push.data)
    else calls.receive(push)
  }

  /** The log was lost under the live socket: what was said may have been lost with it [RES4]. */
  function reset({ data, seq }: Envelope): void {
    const state = data as unknown as Pick<ExtendedAuthOk, 'session_id' | 'epoch' | 'active_calls'>
    session.began(state)
    if (seq !== undefined) session.see(seq)
    news.emit('active', state.active_calls)
    calls.reconcile(state.active_calls, false, false)
  }

  function lost(isFinal: boolean, cause: RingwireErrorShape | undefined): void {
    requests.pause()
    renewal.stop()
    if (!isFinal) return
    endListening()
    session.forget()
    keeper.save(undefined)
    isFresh = true
    requests.close(cause)
    calls.drop(cause)
  }

  const connection = createConnection(
    env,
    {
      url: options.url,
      connectTimeoutMs,
      idleMs: options.heartbeatMs ?? 25_000,
      answerMs: options.heartbeatTimeoutMs ?? 10_000,
      baseMs: options.reconnectBaseMs ?? 500,
      maxMs: options.reconnectMaxMs ?? 15_000,
    },
    tokens,
    {
      query: () => session.query(requests.replied()),
      prepare,
      begun,
      receive,
      lost,
      probe: renewal.probe,
      stateChanged(state) {
        listeners.emit('state', state)
        const { error } = state.why
        if (error && state.name !== 'connecting') report(error as RingwireError)
      },
    },
  )

  const client: ClientWithParts = {
    [parts]: { ask: requests.ask, on: news.on, live: calls.live, add: calls.add, localTime: tokens.localTime },
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
      return iceServers
    },
    get iceTransportPolicy() {
      return iceTransportPolicy
    },
    on: listeners.on,
    find: calls.find,
    call: calls.place,
    wake: connection.wake,

    connect(): void {
      check(env.WebSocket, 'WebSocket', 'given: this runtime has none')
      endListening()
      endListening = env.listen((signal) => (signal === 'offline' ? connection.doubt() : connection.wake()))
      connection.connect()
    },

    freshIceServers: () => tokens.current().then(() => iceServers),

    close(): void {
      calls.hangUp()
      connection.close()
    },
  }
  return client
}
