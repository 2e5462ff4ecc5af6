/**
 * Resumes of an extended session, held with the real service: what goes over the wire, with the numbers as they are. What
 * differs from run to run has its word, as in transcripts.ts.
 */
import type { Client } from '@ringwire/testkit/client'
import { productKey, Service, type TokenWish } from '@ringwire/testkit/service'

/** One step of a trace: a message of somebody, or what happened. */
export type Step = { readonly who: string; readonly sends?: object; readonly gets?: object } | { readonly note: string }

export interface Trace {
  readonly title: string
  readonly rules: readonly string[]
  readonly steps: readonly Step[]
}

const at = (time: string) => `2026-03-02T${time}Z`
const words: Readonly<Record<string, unknown>> = {
  call_uuid: '0b9f7a4e-6a52-4f0e-9d3c-2f1b6c1d7e55',
  started_at: at('09:05:00.000'),
  expires_at: at('09:05:45.000'),
  server_time: at('09:05:10.000'),
  ended_at: at('09:12:40.000'),
  since: at('09:05:20.000'),
  ends_at: at('09:07:20.000'),
}

class Stage {
  readonly steps: Step[] = []
  readonly service: Service
  private readonly product: string
  /** Ids in the order in which they came: a new session is seen to be another one. */
  private readonly ids = new Map<string, string>()
  /** Versions of the call in the order in which they came: a loss that is noticed before the return makes two more. */
  private readonly versions: number[] = []

  constructor(service: Service, product: string) {
    this.service = service
    this.product = product
  }

  private named(kind: string, id: string): string {
    const known = this.ids.get(id)
    if (known !== undefined) return known
    const count = [...this.ids.values()].filter((name) => name.startsWith(kind)).length
    const name = `${kind}-${count + 1}`
    this.ids.set(id, name)
    return name
  }

  private versionOf(version: number): number {
    if (!this.versions.includes(version)) this.versions.push(version)
    return this.versions.indexOf(version) + 1
  }

  /** Ids and times by their words, and versions as if the call had no others. */
  settle(value: object): object {
    return JSON.parse(
      JSON.stringify(value, (key, it) => {
        if (key === 'session_id' || key === 'socket_id') return this.named('session', it)
        if (key === 'epoch') return this.named('epoch', it)
        if (key === 'version') return this.versionOf(it)
        return it !== null && words[key] !== undefined ? words[key] : it
      }),
    )
  }

  note(note: string): void {
    this.steps.push({ note })
  }

  /** A socket; `point`: where the session is to go on. */
  async enter(who: string, wish: TokenWish, query?: Record<string, string>): Promise<Talker> {
    const token = await this.service.token({ product: this.product, ...wish })
    const search = query === undefined ? '' : `?${new URLSearchParams(query)}`
    if (query !== undefined) {
      const shown = Object.entries(query).map(([key, value]) => [key, this.ids.get(value) ?? value].join('='))
      this.note(`${who} connects with ?${shown.join('&')}`)
    }
    const client = this.service.open(token, { path: `/v1/ws${search}` })
    const talker = new Talker(this, who, client)
    await talker.gets('auth.ok')
    return talker
  }
}

class Talker {
  readonly client: Client
  // biome-ignore lint/suspicious/noExplicitAny: what came last is read field by field.
  last: any
  private readonly stage: Stage
  private readonly who: string

  constructor(stage: Stage, who: string, client: Client) {
    this.stage = stage
    this.who = who
    this.client = client
  }

  async gets(event: string) {
    this.last = await this.client.next(event)
    this.stage.steps.push({ who: this.who, gets: this.stage.settle(this.last) })
    return this.last
  }

  sends(message: object): void {
    this.client.text(JSON.stringify(message))
    this.stage.steps.push({ who: this.who, sends: this.stage.settle(message) })
  }

  /** It was sent, and the service never got it. */
  loses(message: object): void {
    this.stage.steps.push({ who: this.who, sends: this.stage.settle(message) })
  }

  async dies(how: string): Promise<void> {
    this.stage.note(how)
    await this.client.die()
  }
}

const ann = { user_id: 'ann', role: 'customer', display_name: 'Ann', device_id: 'ann-phone' }
const ben = { user_id: 'ben', role: 'agent', display_name: 'Ben', device_id: 'ben-phone' }
const candidate = { candidate: 'candidate:1 1 udp 2122260223 192.0.2.1 50000 typ host', sdpMid: '0', sdpMLineIndex: 0 }

/** Ann, a base client, calls; Ben answers. */
async function begin(stage: Stage) {
  const caller = await stage.enter('Ann', ann)
  const callee = await stage.enter('Ben', ben, { ext: '1' })
  const { session_id, epoch } = callee.last.data
  caller.sends({ event: 'call.invite', data: { callee_user_id: 'ben', callee_role: 'agent' } })
  const { call_uuid } = (await caller.gets('call.invited')).data
  await callee.gets('call.ringing')
  callee.sends({ event: 'call.accept', request_id: 'r1', n: 1, data: { call_uuid } })
  await callee.gets('call.ack')
  await caller.gets('call.accepted')
  const resume = { ext: '1', resume: String(session_id), epoch: String(epoch), seq: '1', n: '1' }
  return { caller, callee, call_uuid: String(call_uuid), resume }
}

const traces: Readonly<Record<string, { rules: readonly string[]; play(stage: Stage): Promise<void> }>> = {
  'A resume: what was missed comes once and in order': {
    rules: ['RES1', 'EXT1'],
    async play(stage) {
      const { caller, callee, call_uuid, resume } = await begin(stage)
      await callee.dies('Ben’s socket dies. Ann goes on.')
      for (const sdpMLineIndex of [0, 1])
        caller.sends({ event: 'webrtc.ice_candidate', data: { call_uuid, candidate: { ...candidate, sdpMLineIndex } } })
      await caller.client.settle()
      const back = await stage.enter('Ben', ben, resume)
      await back.gets('webrtc.ice_candidate')
      await back.gets('webrtc.ice_candidate')
      back.sends({ event: 'call.end', request_id: 'r2', n: 2, data: { call_uuid } })
      await back.gets('call.ack')
      await caller.gets('call.ended')
    },
  },
  'A request that was lost is sent again, unchanged': {
    rules: ['RES1', 'EXT4'],
    async play(stage) {
      const { caller, callee, call_uuid, resume } = await begin(stage)
      const end = { event: 'call.end', request_id: 'r2', n: 2, data: { call_uuid } }
      callee.loses(end)
      await callee.dies('Ben’s socket dies, and n 2 with it: handled says 1.')
      const back = await stage.enter('Ben', ben, resume)
      back.sends(end)
      await back.gets('call.ack')
      await caller.gets('call.ended')
    },
  },
  'A reply that was lost comes again': {
    rules: ['RES1', 'EXT2'],
    async play(stage) {
      const { caller, callee, call_uuid, resume } = await begin(stage)
      callee.sends({ event: 'call.connected', request_id: 'r2', n: 2, data: { call_uuid } })
      await callee.client.next('call.ack')
      await callee.dies('Ben’s socket dies before he has read the reply: handled says 2, and the reply follows.')
      const back = await stage.enter('Ben', ben, resume)
      await back.gets('call.ack')
      caller.sends({ event: 'call.end', data: { call_uuid } })
      await back.gets('call.ended')
    },
  },
  'A resume that is refused: seq and n begin again': {
    rules: ['RES2'],
    async play(stage) {
      const { caller, callee, call_uuid, resume } = await begin(stage)
      await callee.dies('Ben’s socket dies, and the service does not know the session any more.')
      const back = await stage.enter('Ben', ben, { ...resume, epoch: 'another-epoch' })
      caller.sends({ event: 'webrtc.ice_candidate', data: { call_uuid, candidate } })
      await back.gets('webrtc.ice_candidate')
      back.sends({ event: 'call.end', request_id: 'r1', n: 1, data: { call_uuid } })
      await back.gets('call.ack')
      await caller.gets('call.ended')
    },
  },
}

/** Each has a product of its own: nothing of one comes to the others. */
export async function playResumes(): Promise<Trace[]> {
  const all = Object.entries(traces)
  const products = all.map((_, index) => `product-${index}`)
  const service = new Service({ RINGWIRE_BOOTSTRAP_KEYS: `${productKey.id}:${productKey.secret}:${products}` })
  try {
    await service.start()
    const played = all.map(async ([title, { rules, play }], index): Promise<Trace> => {
      const stage = new Stage(service, `product-${index}`)
      await play(stage)
      return { title, rules, steps: stage.steps }
    })
    return await Promise.all(played)
  } finally {
    await service.dispose()
  }
}
