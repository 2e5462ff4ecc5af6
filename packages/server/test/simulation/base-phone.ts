import type { Handset } from '../chaos/person.ts'
import type { Line, LineEvents, PhoneOptions } from '../chaos/phone.ts'
import { type Entry, type Frame, type FrameData, isRelay, type Trace } from '../chaos/recording.ts'
import { inFull, inShort } from '../chaos/relay-text.ts'

export interface BasePhoneOptions extends Omit<PhoneOptions, 'onFresh'> {
  /** The time of the service, in ms since the epoch. */
  readonly now: () => number
}

interface Request {
  readonly id: string
  readonly event: string
  readonly data: FrameData
  /** When it went out last; undefined: it waits for a socket. */
  sentAt: number | undefined
  readonly resolve: (reply: Frame) => void
}

const backoffMs = 400
/** How long it waits for `auth.ok`, and for the answer to a probe, before it tries another node. */
const patience = { helloMs: 2_500, probeMs: 5_000 } as const
/** The phone stops a ring by itself when it is over by this much and the service has said nothing more. In ms. */
const afterRingMs = 1_000
/** No ring lasts longer, in ms. */
const longestRingMs = 60_000
/** Its calls end with one of these, or with an error to a request that is about them. */
const hangUps: readonly string[] = ['call.end', 'call.cancel', 'call.reject']
/** Nobody knows it, and the answer says that everything before it has taken effect [ORD1, ENV3]. */
const probe = 'test.probe'

/**
 * A base client that does what docs/base-clients.md says: it sends again what it cannot know to have arrived, learns by a probe
 * that it has, and stops ringing by the clock where nobody tells it more.
 */
export class BasePhone implements Handset {
  private readonly options: BasePhoneOptions
  private readonly entries: Entry[] = []
  private sockets = 0
  private line: Line | undefined
  private openedAt = 0
  private isReady = false
  private asked = 0
  private pending: Request[] = []
  private readonly rings = new Map<string, () => void>()
  /** The calls that it has a side of; of its own that nobody has answered yet the invite. */
  private readonly calls = new Map<string, FrameData | undefined>()
  private whenReady: (() => void)[] = []

  constructor(options: BasePhoneOptions) {
    this.options = options
  }

  get trace(): Trace {
    return { user: this.options.userId, entries: this.entries }
  }

  connect(): void {
    const { at, dial } = this.options
    const socket = this.sockets++
    this.isReady = false
    this.openedAt = at()
    const events: LineEvents = {
      onText: (text) => {
        if (line === this.line) this.take(socket, inShort(JSON.parse(text) as Frame))
      },
      onClosed: (code) => {
        this.entries.push({ kind: 'close', at: at(), socket, code })
        if (line === this.line) this.comeBack()
      },
    }
    const { node, line } = dial('', events)
    this.entries.push({ kind: 'open', at: at(), socket, node })
    this.line = line
  }

  private comeBack(awayMs = 0): void {
    const { random, timers } = this.options
    this.isReady = false
    this.line = undefined
    timers.after(awayMs + random.int(backoffMs) + 1, () => {
      if (this.line === undefined) this.connect()
    })
  }

  tick(): void {
    if (this.line === undefined) return
    const now = this.options.at()
    const askedAt = this.pending[0]?.sentAt ?? now
    if (this.isReady ? now - askedAt > patience.probeMs : now - this.openedAt > patience.helloMs) this.lose()
  }

  lose(awayMs?: number): void {
    const lost = this.line
    if (lost === undefined) return
    this.comeBack(awayMs)
    lost.reset()
  }

  private take(socket: number, frame: Frame): void {
    this.entries.push({ kind: 'in', at: this.options.at(), socket, frame })
    if (frame.event === 'auth.ok') this.onHello()
    else if (frame.request_id !== undefined) this.onReply(frame, frame.request_id)
    else this.hear(frame)
  }

  private onHello(): void {
    this.isReady = true
    for (const request of this.pending) this.transmit(request)
    this.askWhatBecameOfThem()
    for (const resolve of this.whenReady.splice(0)) resolve()
  }

  /** If a call goes on, neither changes anything; if it is over, the answer or a final notice says so. */
  private askWhatBecameOfThem(): void {
    for (const [callUuid, invite] of this.calls) {
      if (invite === undefined) void this.request('call.connected', { call_uuid: callUuid })
      else void this.request('call.invite', invite).then((reply) => this.learn(callUuid, reply))
    }
  }

  private learn(callUuid: string, reply: Frame | undefined): void {
    const status = reply?.data?.status
    if (status === 'ringing' || reply?.error?.retryable === true) return
    const isLive = status === 'accepted' || status === 'connected'
    const data = { call_uuid: callUuid, ...(isLive ? {} : { ended_at: '' }) }
    this.hear({ event: isLive ? 'call.accepted' : 'call.ended', data })
  }

  private onReply(frame: Frame, id: string): void {
    const [name = '', isProbe] = id.split(' ')
    const request = this.pending.find((each) => each.id === name)
    if (request === undefined) return
    this.pending = this.pending.filter((each) => each !== request)
    // What was taken in silence was done.
    const done = { event: request.event, data: { status: statusOf[request.event] ?? 'done' } }
    const { event, data } = request
    const callUuid = data.call_uuid ?? ''
    const isDone = isProbe !== undefined
    if (isDone && event === 'call.accept') {
      this.stopRing(callUuid)
      this.calls.set(callUuid, undefined)
    } else if (event === 'call.invite' && frame.data?.status === 'ringing') this.calls.set(callUuid, data)
    if (isDone ? hangUps.includes(event) : frame.error !== undefined && frame.error.retryable !== true)
      this.calls.delete(callUuid)
    request.resolve(isDone ? done : frame)
  }

  private hear(frame: Frame): void {
    const { call_uuid: callUuid = '', expires_at: expiresAt } = frame.data ?? {}
    if (frame.event === 'call.ringing') this.ring(callUuid, Date.parse(String(expiresAt)))
    else if (!isRelay(frame)) {
      this.stopRing(callUuid)
      if (frame.event === 'call.accepted') this.calls.set(callUuid, undefined)
      else this.calls.delete(callUuid)
    }
    this.options.onPush(frame)
  }

  private ring(callUuid: string, expiresAt: number): void {
    const { timers, now } = this.options
    this.stopRing(callUuid)
    // Its node may not have heard yet that the clock jumped.
    const ms = Math.min(expiresAt - now(), longestRingMs) + afterRingMs
    const data = { call_uuid: callUuid, ended_at: '' }
    this.rings.set(
      callUuid,
      timers.after(ms, () => this.options.onPush({ event: 'call.missed', data })),
    )
  }

  private stopRing(callUuid = ''): void {
    this.rings.get(callUuid)?.()
    this.rings.delete(callUuid)
  }

  /** Of a relay nobody says that it came. */
  request(event: string, data: FrameData): Promise<Frame | undefined> {
    const frame: Frame = { event, data }
    if (isRelay(frame)) {
      if (this.isReady) this.send(frame)
      return Promise.resolve(undefined)
    }
    const { promise, resolve } = Promise.withResolvers<Frame>()
    const request: Request = { id: String(++this.asked), event, data, sentAt: undefined, resolve }
    this.pending.push(request)
    if (this.isReady) this.transmit(request)
    return promise
  }

  private transmit(request: Request): void {
    const { id, event, data } = request
    request.sentAt = this.options.at()
    this.send({ event, request_id: id, data })
    this.send({ event: probe, request_id: `${id} probe` })
  }

  private send(frame: Frame): void {
    this.entries.push({ kind: 'out', at: this.options.at(), socket: this.sockets - 1, frame })
    this.line?.send(JSON.stringify(inFull(frame)))
  }

  async online(): Promise<void> {
    if (!this.isReady) await new Promise<void>((resolve) => this.whenReady.push(resolve))
  }

  async settle(): Promise<void> {
    await this.request(probe, {})
  }
}

/** What a call is after a request of its own was done; `call.invited` says it itself. */
const statusOf: Readonly<Record<string, string>> = { 'call.accept': 'accepted', 'call.connected': 'connected' }
