/** A small client that does what the kit tells it, right or with one fault: what is wrong with it has to be found. */
import { opcodes } from '../../src/conformance/frames.ts'
import { openWire, type Wire } from '../../src/conformance/wire.ts'

/** Each breaks one rule. */
export type ClientFault =
  | 'a token in the URL'
  | 'no pongs'
  | 'no envelope'
  | 'ends at what it does not know'
  | 'invites nobody'
  | 'one call_uuid for all calls'
  | 'accepts what another device has'
  | 'accepts what is missed'
  | 'accepts what is over'
  | 'rejects what rings twice'
  | 'invites again at glare'
  | 'hangs up without a name'
  | 'offers to another call'
  | 'comes back after 4409'
  | 'stays away after 1012'
  | 'comes back before it may'
  | 'comes back with the old token'
  | 'no pauses'
  | 'skips a number'
  | 'forgets its seq'
  | 'sends nothing again'
  | 'goes on counting'
  | 'refreshes with the old token'
  | 'leaves without a word'
  | 'hangs up what another device took'
  | 'stays in a call that was handed on'

type Data = Record<string, unknown>
interface Got {
  readonly event: string
  readonly seq?: number
  readonly request_id?: string
  readonly data: Data
}

export interface SmallClientOptions {
  readonly sessionUrl: string
  readonly peer: { readonly user_id: string; readonly role: string }
  readonly isExtended: boolean
  readonly fault: ClientFault | undefined
  /** It has not taken in that its accept worked when it gets the instruction to hang up: `call.reject` is right, too [END1]. */
  readonly isHasty?: boolean
}

const final = [4400, 4403, 4409, 1002, 1003, 1007, 1008]
const overs = ['call.ended', 'call.cancelled', 'call.rejected', 'call.missed']

export class SmallClient {
  private readonly options: SmallClientOptions
  private wire: Wire | undefined
  private token = ''
  private session = { id: '', epoch: '', seq: 0, n: 0, replied: 0 }
  private unhandled: { n: number; id: string; text: string }[] = []
  private callUuid = ''
  private readonly ownUuid = crypto.randomUUID()
  private isLeaving = false
  private failures = 0
  private heldBackMs = 0

  constructor(options: SmallClientOptions) {
    this.options = options
  }

  private is(fault: ClientFault): boolean {
    return this.options.fault === fault
  }

  async do(action: string): Promise<void> {
    const { peer } = this.options
    const call_uuid = this.callUuid
    if (action === 'connect') {
      this.isLeaving = false
      await this.connect()
    } else if (action === 'call') {
      this.callUuid = this.is('one call_uuid for all calls') ? this.ownUuid : crypto.randomUUID()
      const whom = { callee_user_id: peer.user_id, ...(this.is('invites nobody') ? {} : { callee_role: peer.role }) }
      this.send('call.invite', { ...whom, call_uuid: this.callUuid })
    } else if (action === 'answer') this.send('call.accept', { call_uuid })
    else if (action === 'decline') this.send('call.reject', { call_uuid })
    else if (action === 'cancel') this.send('call.cancel', { call_uuid })
    else if (action === 'hang_up') this.hangUp()
    else if (action === 'disconnect') {
      this.isLeaving = true
      if (this.is('leaves without a word')) this.wire?.reset()
      else this.wire?.close(1000)
    }
  }

  private hangUp(): void {
    const { isHasty } = this.options
    const data = this.is('hangs up without a name') ? {} : { call_uuid: this.callUuid }
    this.send(isHasty === true ? 'call.reject' : 'call.end', data)
  }

  stop(): void {
    this.isLeaving = true
    this.wire?.reset()
  }

  private async connect(isNew = true): Promise<void> {
    const answer = isNew ? await fetch(this.options.sessionUrl).catch(() => undefined) : undefined
    const given = (await answer?.json()) as { token: string; ws_url: string; expires_at: string } | undefined
    if (isNew && given === undefined) return this.later()
    if (given !== undefined) {
      this.token = given.token
      this.url = given.ws_url
      this.plan(Date.parse(given.expires_at) - Date.now())
    }
    const { isExtended } = this.options
    const query = new URLSearchParams(isExtended ? this.query() : {})
    if (this.is('a token in the URL')) query.set('token', this.token)
    const isSaid = query.size > 0
    this.wire = openWire({
      url: `${this.url}${isSaid ? `?${query}` : ''}`,
      headers: [`Sec-WebSocket-Protocol: jwt, ${this.token}`],
      onMessage: (opcode, payload) => this.take(opcode, payload),
      onClosed: ({ code }) => this.onClosed(code),
    })
  }

  private url = ''

  private query(): Record<string, string> {
    const { id, epoch, seq, replied } = this.session
    const can = 'transfer'
    if (id === '') return { ext: '1', can }
    return { ext: '1', can, resume: id, epoch, seq: String(this.is('forgets its seq') ? 0 : seq), n: String(replied) }
  }

  /** A new token before the old one runs out [WS5]. */
  private plan(leftMs: number): void {
    if (!this.options.isExtended || leftMs > 60_000) return
    setTimeout(async () => {
      const { token } = (await (await fetch(this.options.sessionUrl)).json()) as { token: string }
      this.send('auth.refresh', { token: this.is('refreshes with the old token') ? this.token : token })
      if (!this.is('refreshes with the old token')) this.token = token
    }, leftMs / 2)
  }

  private onClosed(code: number): void {
    if (this.isLeaving || (this.is('stays away after 1012') && code === 1012)) return
    const isFinal = final.includes(code) && !(this.is('comes back after 4409') && code === 4409)
    if (isFinal) this.session = { id: '', epoch: '', seq: 0, n: 0, replied: 0 }
    else this.later(this.is('comes back with the old token'))
  }

  private later(hasToken = false): void {
    const pauseMs = Math.max(50 * 2 ** this.failures++, this.heldBackMs)
    this.heldBackMs = 0
    setTimeout(() => void this.connect(!hasToken), this.is('no pauses') ? 20 : Math.min(pauseMs, 5_000))
  }

  private take(opcode: number, payload: Buffer): void {
    if (opcode === opcodes.ping && !this.is('no pongs')) this.wire?.send(opcodes.pong, payload)
    if (opcode === opcodes.text) this.onMessage(JSON.parse(payload.toString()) as Got)
  }

  private onMessage({ event, data, seq, request_id }: Got): void {
    if (seq !== undefined) this.session.seq = seq
    else if (request_id !== undefined) this.onReply(request_id)
    const isMine = data?.call_uuid === this.callUuid
    if (event === 'auth.ok') this.onHello(data)
    else if (event === 'call.ringing') this.onRinging(data)
    else if (event === 'call.transferring' && isMine && !this.is('stays in a call that was handed on'))
      this.callUuid = String(data.new_call_uuid)
    else if (event === 'call.accepted' && isMine) {
      const call_uuid = this.is('offers to another call') ? 'no-call' : data.call_uuid
      this.send('webrtc.offer', { call_uuid, sdp: { type: 'offer', sdp: 'v=0\r\n' } })
    } else if (event === 'call.error') this.onError((data.error ?? {}) as Data)
    else if (overs.includes(event) && isMine) this.onOver(event, data)
    else if (event === 'call.kit_unknown' && this.is('ends at what it does not know')) this.wire?.reset()
  }

  private onHello(data: Data): void {
    this.failures = 0
    if (this.is('no envelope')) this.wire?.send(opcodes.text, 'hello')
    if (!this.options.isExtended) return
    const { session_id: id, epoch, recovered, handled } = data as { [name: string]: string } & Data
    if (recovered) {
      this.session.epoch = String(epoch)
      if (this.is('sends nothing again')) return
      for (const { n, text } of this.unhandled) if (n > Number(handled)) this.wire?.send(opcodes.text, text)
      return
    }
    this.unhandled = []
    const n = this.is('goes on counting') ? this.session.n : 0
    this.session = { id: String(id), epoch: String(epoch), seq: 0, n, replied: 0 }
  }

  private onReply(id: string): void {
    const n = this.unhandled.find((it) => it.id === id)?.n
    if (n === undefined) return
    this.session.replied = n
    this.unhandled = this.unhandled.filter((it) => it.n > n)
  }

  private onRinging({ call_uuid }: Data): void {
    const isAgain = this.callUuid === call_uuid
    this.callUuid = String(call_uuid)
    if (isAgain && this.is('rejects what rings twice')) this.send('call.reject', { call_uuid })
  }

  private onError({ code, retry_after_ms, call_uuid }: Data): void {
    if (!this.is('comes back before it may')) this.heldBackMs = Number(retry_after_ms ?? 0)
    if (code !== 'CALL_GLARE') return
    if (this.is('invites again at glare')) void this.do('call')
    else this.callUuid = String(call_uuid)
  }

  private onOver(event: string, { call_uuid, reason }: Data): void {
    const isElsewhere = reason === 'answered_elsewhere'
    const accepts =
      (isElsewhere && this.is('accepts what another device has')) ||
      (event === 'call.missed' && this.is('accepts what is missed')) ||
      (event === 'call.ended' && this.is('accepts what is over'))
    if (accepts) this.send('call.accept', { call_uuid })
    if (reason === 'taken_elsewhere' && this.is('hangs up what another device took')) this.hangUp()
  }

  private send(event: string, data: Data): void {
    if (!this.options.isExtended) {
      this.wire?.send(opcodes.text, JSON.stringify({ event, data }))
      return
    }
    this.session.n += this.is('skips a number') && event === 'call.accept' ? 2 : 1
    const { n } = this.session
    const id = crypto.randomUUID()
    const text = JSON.stringify({ event, request_id: id, n, data })
    this.unhandled.push({ n, id, text })
    this.wire?.send(opcodes.text, text)
  }
}
