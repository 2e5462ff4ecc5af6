/**
 * The conversations of docs/base-clients.md, held with the real service. Ids and times are not the same twice, so each has
 * its word of the documents' story: Ann, a customer, calls Ben, an agent, about order 1042.
 */
import type { Client } from '@ringwire/testkit/client'
import { productKey, Service } from '@ringwire/testkit/service'

type Person = 'Ann' | 'Ben'
const tokens = {
  Ann: { user_id: 'ann', role: 'customer', display_name: 'Ann' },
  Ben: { user_id: 'ben', role: 'agent', display_name: 'Ben' },
} as const
const context = { context_type: 'order', context_id: '1042' }

const at = (time: string) => `2026-03-02T${time}Z`
/** What differs from run to run, by its name. */
const words: Readonly<Record<string, unknown>> = {
  call_uuid: '0b9f7a4e-6a52-4f0e-9d3c-2f1b6c1d7e55',
  socket_id: 'aK4q5Xc0mX9T3uYb1cQm1V8wA',
  started_at: at('09:05:00.000'),
  expires_at: at('09:05:45.000'),
  ended_at: at('09:12:40.000'),
}

function settled(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, it]) => [name, it === null ? null : (words[name] ?? it)]))
}

/** One conversation: what goes over the sockets, in the order in which it was waited for. */
class Stage {
  readonly lines: string[] = []
  callUuid = ''
  private readonly service: Service
  private readonly product: string
  private readonly open = new Set<Client>()
  private readonly heard = new Map<Client, number>()

  constructor(service: Service, product: string) {
    this.service = service
    this.product = product
  }

  /** A part that was shown already takes a few words. */
  soFar(text: string): void {
    this.lines.splice(0, this.lines.length, `(${text})`)
  }

  /** As a backend does, with its product key [SRV2]. */
  async endByBackend(): Promise<void> {
    const path = `/v1/server/calls/${this.callUuid}/end`
    const headers = { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret }
    const body = JSON.stringify({ product: this.product })
    const response = await fetch(this.service.url + path, { method: 'POST', headers, body })
    if (response.status !== 200) throw new Error(`the backend: ${response.status}`)
    this.lines.push('(The backend ends the call.)')
  }

  private line(who: string, arrow: string, message: object): void {
    this.lines.push(`${who} ${arrow} ${JSON.stringify(message, settled)}`)
  }

  async enter(person: Person, device: string | null = null, name: string = person): Promise<Talker> {
    const client = await this.service.connect({
      product: this.product,
      ...context,
      ...tokens[person],
      device_id: device,
    })
    this.open.add(client)
    this.line(name, '←', client.all[0] ?? {})
    this.heard.set(client, 1)
    return {
      client,
      send: (event, data = { call_uuid: this.callUuid }) => {
        client.send(event, data)
        this.line(name, '→', { event, data })
      },
      hear: async (event) => {
        const message = await client.next(event)
        if (event === 'call.invited') this.callUuid = message.data.call_uuid
        this.line(name, '←', message)
        this.heard.set(client, (this.heard.get(client) ?? 0) + 1)
      },
      lose: async (how, closes = false) => {
        this.lines.push(`(${how})`)
        this.open.delete(client)
        await (closes ? client.close(1001) : client.die())
      },
    }
  }

  /** Nothing came that the page does not show. */
  async leave(): Promise<void> {
    for (const client of this.open) {
      await client.settle()
      const shown = this.heard.get(client) ?? 0
      if (client.events().length !== shown) throw new Error(`not shown: ${client.events().slice(shown)}`)
      await client.close()
    }
  }
}

interface Talker {
  readonly client: Client
  /** Without data it only names the call. */
  send(event: string, data?: object): void
  hear(event: string): Promise<void>
  /** The socket is gone: without a word, or with a close frame, as from a browser whose page goes. */
  lose(how: string, closes?: boolean): Promise<void>
}

const callee = { callee_user_id: 'ben', callee_role: 'agent' }

async function ring(stage: Stage): Promise<{ ann: Talker; ben: Talker }> {
  const ann = await stage.enter('Ann')
  const ben = await stage.enter('Ben')
  ann.send('call.invite', callee)
  await ann.hear('call.invited')
  await ben.hear('call.ringing')
  return { ann, ben }
}

/** The service has a pong for what came so far [PLACE5]. */
async function proof({ client }: Talker): Promise<void> {
  await client.nextPing()
  await client.settle()
}

async function answer(stage: Stage): Promise<{ ann: Talker; ben: Talker }> {
  const pair = await ring(stage)
  pair.ben.send('call.accept')
  await pair.ann.hear('call.accepted')
  await Promise.all([proof(pair.ann), proof(pair.ben)])
  return pair
}

const sdp = (type: 'offer' | 'answer') => ({ type, sdp: 'v=0\r\n…' })
const candidate = { candidate: 'candidate:1 1 udp 2122260223 192.0.2.1 50000 typ host', sdpMid: '0', sdpMLineIndex: 0 }

/** By the heading under which each one stands. */
export const conversations: Readonly<Record<string, (stage: Stage) => Promise<void>>> = {
  async 'A call'(stage) {
    const { ann, ben } = await answer(stage)
    const call_uuid = stage.callUuid
    ann.send('webrtc.offer', { call_uuid, sdp: sdp('offer') })
    await ben.hear('webrtc.offer')
    ben.send('webrtc.answer', { call_uuid, sdp: sdp('answer') })
    await ann.hear('webrtc.answer')
    ann.send('webrtc.ice_candidate', { call_uuid, candidate })
    await ben.hear('webrtc.ice_candidate')
    ann.send('call.connected')
    ben.send('call.connected')
    ben.send('call.end')
    await ann.hear('call.ended')
  },
  async Declined(stage) {
    const { ann, ben } = await ring(stage)
    stage.soFar('Ann calls, and it rings at Ben’s.')
    ben.send('call.reject')
    await ann.hear('call.rejected')
  },
  async 'Given up by the caller'(stage) {
    const { ann, ben } = await ring(stage)
    stage.soFar('Ann calls, and it rings at Ben’s.')
    ann.send('call.cancel')
    await ben.hear('call.cancelled')
  },
  async Missed(stage) {
    const ann = await stage.enter('Ann')
    const ben = await stage.enter('Ben', 'ben-phone')
    // Messages that still come to him are lost with the socket.
    ben.client.answersPings = false
    ann.send('call.invite', { ...callee, ring_timeout_ms: 1000 })
    await ann.hear('call.invited')
    await ben.hear('call.ringing')
    await ben.lose('Ben’s phone loses its network, and a second passes.')
    await ann.hear('call.missed')
    const again = await stage.enter('Ben', 'ben-phone')
    await again.hear('call.missed')
  },
  async 'Two devices'(stage) {
    const ann = await stage.enter('Ann')
    const phone = await stage.enter('Ben', 'ben-phone', 'Ben’s phone')
    const tablet = await stage.enter('Ben', 'ben-tablet', 'Ben’s tablet')
    ann.send('call.invite', callee)
    await ann.hear('call.invited')
    await phone.hear('call.ringing')
    await tablet.hear('call.ringing')
    phone.send('call.accept')
    await ann.hear('call.accepted')
    await tablet.hear('call.cancelled')
    tablet.send('call.accept')
    await tablet.hear('call.error')
  },
  async 'Declined on another device'(stage) {
    const ann = await stage.enter('Ann')
    const phone = await stage.enter('Ben', 'ben-phone', 'Ben’s phone')
    const tablet = await stage.enter('Ben', 'ben-tablet', 'Ben’s tablet')
    ann.send('call.invite', callee)
    await ann.hear('call.invited')
    await phone.hear('call.ringing')
    await tablet.hear('call.ringing')
    stage.soFar('Ann calls, and it rings on both devices of Ben.')
    tablet.send('call.reject')
    await ann.hear('call.rejected')
    await phone.hear('call.cancelled')
  },
  async 'Ended by the backend'(stage) {
    const { ann, ben } = await answer(stage)
    stage.soFar('Ann called, and Ben answered.')
    await stage.endByBackend()
    await ann.hear('call.ended')
    await ben.hear('call.ended')
  },
  async 'A socket is lost in the call'(stage) {
    const { ann, ben } = await answer(stage)
    stage.soFar('Ann called, and Ben answered.')
    const call_uuid = stage.callUuid
    // Messages that come from now on are lost with the socket.
    ben.client.answersPings = false
    ann.send('webrtc.offer', { call_uuid, sdp: sdp('offer') })
    await ben.hear('webrtc.offer')
    await ben.lose('Ben’s socket dies before he could answer. Ann goes on.')
    ann.send('webrtc.ice_candidate', { call_uuid, candidate })
    await ann.client.settle()
    const again = await stage.enter('Ben')
    await again.hear('webrtc.offer')
    await again.hear('webrtc.ice_candidate')
    again.send('webrtc.answer', { call_uuid, sdp: sdp('answer') })
    await ann.hear('webrtc.answer')
  },
  async 'A page is loaded again'(stage) {
    const { ann, ben } = await answer(stage)
    stage.soFar('Ann called, and Ben answered.')
    const call_uuid = stage.callUuid
    ann.send('webrtc.offer', { call_uuid, sdp: sdp('offer') })
    await ben.hear('webrtc.offer')
    await ben.lose('Ben’s browser closes the socket, as it does when a page is loaded again.', true)
    const again = await stage.enter('Ben')
    await ann.hear('call.accepted')
    ann.send('webrtc.offer', { call_uuid, sdp: sdp('offer') })
    await again.hear('webrtc.offer')
  },
  async 'The call ended meanwhile'(stage) {
    const { ann, ben } = await answer(stage)
    stage.soFar('Ann called, and Ben answered.')
    await ben.lose('Ben’s socket dies.')
    ann.send('call.end')
    await ann.client.settle()
    const again = await stage.enter('Ben')
    await again.hear('call.ended')
  },
  async 'An error'(stage) {
    const ann = await stage.enter('Ann')
    const data = { callee_user_id: 'carl', callee_role: 'driver' }
    const message = { event: 'call.invite', request_id: 'r1', data }
    ann.client.send(message.event, data, message.request_id)
    stage.lines.push(`Ann → ${JSON.stringify(message)}`)
    await ann.hear('call.error')
  },
}

/** Each conversation as the page shows it. Each has a product of its own: nothing of one comes to the others. */
export async function play(): Promise<ReadonlyMap<string, string>> {
  const all = Object.entries(conversations)
  const products = all.map((_, index) => `product-${index}`)
  const service = new Service({
    RINGWIRE_BOOTSTRAP_KEYS: `${productKey.id}:${productKey.secret}:${products}`,
    // A pong proves soon what came.
    RINGWIRE_PING_INTERVAL_MS: '200',
  })
  try {
    await service.start()
    const played = all.map(async ([title, talk], index): Promise<[string, string]> => {
      const stage = new Stage(service, `product-${index}`)
      await talk(stage)
      await stage.leave()
      return [title, `${stage.lines.join('\n')}\n`]
    })
    return new Map(await Promise.all(played))
  } finally {
    await service.dispose()
  }
}
