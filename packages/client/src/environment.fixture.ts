import { createClient } from './client.ts'
import type { Environment, Signal } from './environment.ts'
import type { RingwireError } from './error.ts'
import type { CallClient, CallClientOptions, SessionToken, WebSocketLike } from './types.ts'

/** Time and sockets by hand, for what real ones cannot be made to do. */
export interface Fake {
  readonly env: Environment
  readonly sockets: FakeSocket[]
  /** The newest socket. */
  readonly socket: FakeSocket
  /** What Math.random says. */
  random: number
  /** Added to what the clock says; timers do not see it. */
  clockJump: number
  /** Timers that are set. */
  readonly timers: number
  /** Lets so much time pass, with everything that is due in it, promises too. */
  pass(ms: number): Promise<void>
  signal(signal: Signal): void
}

export class FakeSocket implements WebSocketLike {
  readyState = 0
  onopen: ((event: never) => void) | null = null
  onmessage: ((event: never) => void) | null = null
  onerror: ((event: never) => void) | null = null
  onclose: ((event: never) => void) | null = null
  readonly url: string
  readonly protocols: string[]
  readonly sent: { event: string; request_id: string; n: number; data: Record<string, unknown> }[] = []
  closedWith: number | undefined

  constructor(url: string, protocols: string[]) {
    this.url = url
    this.protocols = protocols
  }
  send(text: string): void {
    this.sent.push(JSON.parse(text))
  }
  close(code?: number): void {
    this.closedWith = code ?? 1005
  }

  /** The service says something. */
  says(message: object): void {
    ;(this.onmessage as ((event: object) => void) | null)?.({ data: JSON.stringify(message) })
  }
  ends(code: number, reason = ''): void {
    ;(this.onclose as ((event: object) => void) | null)?.({ code, reason })
  }
  ok(data: object = {}): void {
    const session = { session_id: 's1', epoch: 'e1', resume_window_ms: 120_000, recovered: false, handled: 0 }
    const self = { user_id: 'me', role: 'customer', display_name: 'Me', socket_id: 'k1' }
    const server_time = new Date(start).toISOString()
    this.says({
      event: 'auth.ok',
      success: true,
      data: { ...self, ...session, server_time, active_calls: [], ...data },
    })
  }
  /** Answers the last request, or the last one with this event. */
  replies(event: string, data: object = {}, to?: string): void {
    const request = this.sent.findLast((it) => to === undefined || it.event === to)
    this.says({ event, request_id: request?.request_id, data })
  }
  fails(code: string, details: object = {}, to?: string): void {
    const request = this.sent.findLast((it) => to === undefined || it.event === to)
    const error = { code, message: code, ...details }
    this.says({ event: 'call.error', request_id: request?.request_id, error, data: { error } })
  }
  events(): string[] {
    return this.sent.map(({ event, n }) => `${n} ${event}`)
  }
}

export const start = Date.parse('2030-01-01T00:00:00Z')
export const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

export function createFake(): Fake {
  let time = 0
  let timers: { at: number; run: () => void }[] = []
  let uuids = 0
  const listeners = new Set<(signal: Signal) => void>()
  const sockets: FakeSocket[] = []
  const Recorded = class extends FakeSocket {
    constructor(url: string, protocols: string[]) {
      super(url, protocols)
      sockets.push(this)
    }
  }

  const fake: Fake = {
    sockets,
    get socket() {
      return sockets.at(-1)!
    },
    random: 0.5,
    clockJump: 0,
    get timers() {
      return timers.length
    },
    async pass(ms) {
      const end = time + ms
      await turn()
      for (;;) {
        const due = timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0]
        if (due === undefined) break
        timers = timers.filter((it) => it !== due)
        time = Math.max(time, due.at)
        due.run()
        await turn()
      }
      time = end
    },
    signal(signal) {
      for (const run of listeners) run(signal)
    },
    env: {
      now: () => start + time + fake.clockJump,
      random: () => fake.random,
      after(ms, run) {
        const timer = { at: time + ms, run }
        timers.push(timer)
        return () => {
          timers = timers.filter((it) => it !== timer)
        }
      },
      WebSocket: Recorded,
      uuid: () => `00000000-0000-4000-8000-${String(++uuids).padStart(12, '0')}`,
      visit: () => 'reload',
      listen(run) {
        listeners.add(run)
        return () => listeners.delete(run)
      },
    },
  }
  return fake
}

/** A token that lasts this long by the service's clock. */
export function tokenFor(fake: Fake, ms: number, name = 'token'): SessionToken {
  const expires = new Date(fake.env.now() - fake.clockJump + ms).toISOString()
  return { token: name, expires_at: expires, ws_url: 'ws://service/v1/ws' }
}

export function fakeClient(
  options: Partial<CallClientOptions> = {},
  lifetimeMs = 3_600_000,
): Fake & { client: CallClient; asked: string[] } {
  const fake = createFake()
  const asked: string[] = []
  const getToken = async (reason: string) => {
    asked.push(reason)
    return tokenFor(fake, lifetimeMs, `token ${asked.length}`)
  }
  const client = createClient({ getToken, ...options }, fake.env)
  // The fake's members are getters: they have to stay what they are.
  return Object.defineProperties(
    { client, asked } as Fake & { client: CallClient; asked: string[] },
    Object.getOwnPropertyDescriptors(fake),
  )
}

/** A client that has its `auth.ok`. */
export async function onlineFake(options: Partial<CallClientOptions> = {}, lifetimeMs?: number) {
  const fake = fakeClient(options, lifetimeMs)
  fake.client.connect()
  await turn()
  fake.socket.ok()
  return fake
}

/** What the service says about calls. */
export const agent = { userId: 'agent', role: 'agent' }
export const uuid = (n: number) => `aaaaaaaa-0000-4000-8000-${String(n).padStart(12, '0')}`

export function rings(seq: number, callUuid = uuid(1), from = 'agent') {
  const caller = { caller_user_id: from, caller_role: 'agent', display_name: from }
  const about = { context_type: 'order', context_id: '1', call_type: 'audio', ring_timeout_ms: 45_000 }
  const data = { call_uuid: callUuid, ...caller, ...about, expires_at: new Date(start + 45_000).toISOString() }
  return { event: 'call.ringing', data, seq, version: 1 }
}

export function active(callUuid: string, more: object = {}) {
  const peer = { user_id: 'agent', role: 'agent', display_name: 'Agent' }
  const about = { call_type: 'video', context_type: 'order', context_id: '1', version: 2, direction: 'outgoing' }
  const times = { started_at: new Date(start).toISOString(), expires_at: new Date(start + 45_000).toISOString() }
  return { call_uuid: callUuid, status: 'accepted', peer, ...about, ...times, holds_place: true, ...more }
}

export const invited = {
  ...{ status: 'ringing', call_type: 'audio', ring_timeout_ms: 45_000, delivered: true },
  expires_at: new Date(start + 45_000).toISOString(),
}

export async function failure(promise: Promise<unknown>): Promise<RingwireError> {
  return promise.then(
    () => Promise.reject(new Error('it did not fail')),
    (error) => error,
  )
}
