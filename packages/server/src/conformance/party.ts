/** One participant that the kit plays: a socket, what came on it, and what it asks for. */
import { type Closed, opcodes } from './frames.ts'
import type { Heard } from './heard.ts'
import type { RuleId } from './rules.ts'
import type { Transcript } from './transcript.ts'
import { type Judge, Stop } from './verdicts.ts'
import type { Watch } from './watch.ts'
import { type HandshakeAnswer, openWire, type Wire } from './wire.ts'

export interface PartyOptions {
  readonly name: string
  readonly wsUrl: string
  readonly headers: readonly string[]
  readonly judge: Judge
  readonly transcript: Transcript
  readonly watch: Watch
  readonly patienceMs: number
  readonly answersPings?: boolean
  readonly key?: string
  readonly version?: string
}

/** After the service had its say, it has this time for what other nodes still bring, in ms. */
const graceMs = 150
export class Party {
  readonly name: string
  readonly all: Heard[] = []
  /** The same, as they were written. */
  readonly texts: string[] = []
  readonly answer: Promise<HandshakeAnswer>
  readonly closed: Promise<Closed>
  pings = 0
  /** Of the last push, and of the last request with a reply. */
  seq = 0
  replied = 0
  n = 0
  private readonly options: PartyOptions
  private readonly wire: Wire
  private readonly unread: Heard[] = []
  private end: Closed | undefined
  private waiters: { fits: (heard: Heard) => boolean; resolve: (heard: Heard) => void }[] = []
  private onPing: (() => void)[] = []
  private readonly numbered = new Map<string, number>()

  constructor(options: PartyOptions) {
    this.options = options
    this.name = options.name
    const { promise, resolve } = Promise.withResolvers<Closed>()
    this.closed = promise
    this.wire = openWire({
      url: options.wsUrl,
      headers: options.headers,
      ...(options.key !== undefined && { key: options.key }),
      ...(options.version !== undefined && { version: options.version }),
      onMessage: (opcode, payload) => this.take(opcode, payload),
      onClosed: (closed) => {
        this.end = closed
        this.note('note', `closed with ${closed.code} ${closed.reason}`)
        resolve(closed)
      },
    })
    this.answer = this.wire.answer
  }

  private note(kind: 'sent' | 'received' | 'note', text: string): void {
    this.options.transcript.note(this.name, kind, text)
  }

  private take(opcode: number, payload: Buffer): void {
    if (opcode === opcodes.ping) {
      this.pings++
      if (this.options.answersPings !== false) this.wire.send(opcodes.pong, payload)
      for (const heard of this.onPing.splice(0)) heard()
    }
    if (opcode !== opcodes.text && opcode !== opcodes.binary) return
    const text = payload.toString()
    this.note('received', text)
    const heard = this.options.watch.look(this.name, text)
    if (heard === undefined) return
    this.all.push(heard)
    this.texts.push(text)
    if (typeof heard.seq === 'number') this.seq = heard.seq
    const n = heard.seq === undefined ? this.numbered.get(heard.request_id ?? '') : undefined
    if (n !== undefined) this.replied = Math.max(this.replied, n)
    const index = this.waiters.findIndex(({ fits }) => fits(heard))
    if (index < 0) this.unread.push(heard)
    else this.waiters.splice(index, 1)[0]?.resolve(heard)
  }

  text(text: string): void {
    this.note('sent', text)
    this.wire.send(opcodes.text, text)
  }

  binary(text: string): void {
    this.note('sent', text)
    this.wire.send(opcodes.binary, Buffer.from(text))
  }

  send(event: string, data?: object, requestId?: string): void {
    this.text(JSON.stringify({ event, request_id: requestId, data }))
  }

  /** Of an extended session: with its number. Answers the request_id. */
  ask(event: string, data: object = {}, requestId: string = crypto.randomUUID()): string {
    this.numbered.set(requestId, ++this.n)
    this.text(JSON.stringify({ event, request_id: requestId, n: this.n, data }))
    return requestId
  }

  /** The next unread message that fits. If none comes, the rule has failed, and the scenario ends. */
  async next(rule: RuleId, event: string, fits: (heard: Heard) => boolean = () => true): Promise<Heard> {
    const heard = await this.waitFor((it) => it.event === event && fits(it))
    const { judge } = this.options
    if (heard === undefined) {
      const instead = this.unread.map((it) => it.event).join(', ') || 'nothing'
      const how = this.end === undefined ? '' : `; the socket was closed with ${this.end.code}`
      judge.check(rule, false, `${this.name} got no ${event}; unread: ${instead}${how}`)
      throw new Stop(event)
    }
    judge.check(rule, true, event)
    return heard
  }

  /** The same, where it may not come. */
  waitFor(fits: (heard: Heard) => boolean, ms = this.options.patienceMs): Promise<Heard | undefined> {
    const index = this.unread.findIndex(fits)
    if (index >= 0) return Promise.resolve(this.unread.splice(index, 1)[0])
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.waiters = this.waiters.filter((it) => it !== waiter)
        resolve(undefined)
      }, ms)
      const waiter = {
        fits,
        resolve: (heard: Heard) => {
          clearTimeout(timer)
          resolve(heard)
        },
      }
      this.waiters.push(waiter)
    })
  }

  error(rule: RuleId, requestId: string): Promise<Heard> {
    return this.next(rule, 'call.error', (it) => it.request_id === requestId)
  }

  reply(rule: RuleId, requestId: string): Promise<Heard> {
    return this.next(rule, 'call.ack', (it) => it.request_id === requestId)
  }

  /** All that was decided before: an unknown event is answered after it [ENV3, ORD1]. */
  async settle(): Promise<void> {
    const id = `settle-${crypto.randomUUID()}`
    this.send('kit.settle', {}, id)
    await this.error('ENV3', id)
    await Bun.sleep(graceMs)
  }

  /** Whether something came that nobody has read yet. */
  hasUnread(fits: (heard: Heard) => boolean): boolean {
    return this.unread.some(fits)
  }

  /** How the socket ends; undefined where it stays open. */
  async closes(ms = this.options.patienceMs): Promise<Closed | undefined> {
    return Promise.race([this.closed, Bun.sleep(ms).then(() => undefined)])
  }

  nextPing(ms: number): Promise<boolean> {
    const pinged = new Promise<boolean>((resolve) => this.onPing.push(() => resolve(true)))
    return Promise.race([pinged, Bun.sleep(ms).then(() => false)])
  }

  close(code = 1000): void {
    this.note('note', `closes with ${code}`)
    this.wire.close(code)
  }

  cut(): void {
    this.note('note', 'loses its network')
    this.wire.reset()
  }
}
