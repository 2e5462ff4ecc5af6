import { describe, expect, test } from 'bun:test'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import type { ResumePoint } from '@ringwire/testkit/extended-trace'
import { candidate, someone } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import { check } from '../../support/extended-check.ts'
import { answeredCall, candidatesOf, connectExtended, connectExtendedPair } from '../../support/extended-flows.ts'
import { inviteOf } from '../../support/sessions.ts'
import { type Start, serviceFor } from '../calls/composition.ts'

const rounds = 50
const upTo = (count: number) => Array.from({ length: count }, (_, n) => n)

/** Requests take effect once and in order, over however many sockets [EXT4]. */
export function registerUpstream(name: string, start: Start): void {
  describe(`requests are numbered, ${name}`, () => {
    const service = serviceFor(start)
    registerNumbers(service)
    registerSkips(service)
    registerCuts(service)
    registerReplaced(service)
  })
  describe(`numbers of requests over the rate, ${name}`, () => {
    registerRate(serviceFor(start, { RINGWIRE_WS_RATE: '1/10' }))
  })
}

function registerNumbers(service: () => Service): void {
  test('[EXT4] auth.ok says which request took effect last, with a reply or without', async () => {
    const pair = await connectExtendedPair(service())
    const callUuid = await answeredCall(pair)
    for (const n of upTo(3)) pair.caller.send('webrtc.ice_candidate', candidate(callUuid, n))
    await pair.caller.settle()
    await pair.caller.die()
    // call.invite, three candidates, the unknown event of `settle`.
    expect((await pair.caller.connect()).data).toMatchObject({ recovered: true, handled: 5 })
    await pair.caller.settle()
    await pair.caller.die()
    expect((await pair.caller.connect()).data).toMatchObject({ recovered: true, handled: 6 })
  })

  test('[EXT4] what was handled has no second effect and no second reply, on the same socket too', async () => {
    const pair = await connectExtendedPair(service())
    const callUuid = await answeredCall(pair)
    const again = (n: number, mark: number) =>
      JSON.stringify({ event: 'webrtc.ice_candidate', request_id: `again-${n}`, n, data: candidate(callUuid, mark) })
    await pair.caller.request('webrtc.ice_candidate', candidate(callUuid, 0))
    pair.caller.raw(again(2, 1), again(1, 2), again(2, 3))
    pair.caller.raw(JSON.stringify({ event: 'call.end', request_id: 'again', n: 2, data: { call_uuid: callUuid } }))
    await pair.caller.settle()
    await pair.callee.settle()
    expect(candidatesOf(pair.callee, callUuid)).toEqual([0])
    expect(pair.callee.events()).toEqual(['call.ringing', 'webrtc.ice_candidate'])
    expect(pair.caller.all.filter(({ request_id: id }) => id?.startsWith('again'))).toEqual([])
  })

  test('[EXT4] an error is a reply as any other: malformed and refused requests have their numbers', async () => {
    const { caller } = await connectExtendedPair(service())
    const texts = [
      { event: 'call.invite', request_id: 'e1', n: 1, data: {} },
      { event: 'no.such.event', request_id: 'e2', n: 2 },
      { event: 'call.accept', request_id: 'e3', n: 3, data: { call_uuid: crypto.randomUUID() } },
      { event: 'call.accept', request_id: 'e4', n: 4, data: 'text' },
      { event: 7, request_id: 'e5', n: 5 },
      { event: 'call.accept', request_id: 'x'.repeat(129), n: 6 },
      { event: 'call.accept', n: 7, data: {} },
    ].map((envelope) => JSON.stringify(envelope))
    const point = caller.point as ResumePoint
    caller.raw(...texts)
    for (let n = 0; n < texts.length; n++) await caller.next('call.error')
    await caller.die()
    const hello = await caller.connect(point)
    expect(hello.data).toMatchObject({ recovered: true, handled: 7 })
    const codes: string[] = []
    for (let n = 0; n < texts.length; n++) codes.push((await caller.next('call.error')).error.code)
    const [bad, unknown, notFound, ...malformed] = codes
    expect([bad, unknown, notFound]).toEqual(['INVALID_PAYLOAD', 'UNKNOWN_EVENT', 'CALL_NOT_FOUND'])
    expect(malformed).toEqual(['INVALID_MESSAGE', 'INVALID_MESSAGE', 'INVALID_MESSAGE', 'INVALID_PAYLOAD'])
    // And again they have no effect.
    caller.raw(...texts)
    await caller.settle()
    expect(caller.all.filter(({ event }) => event === 'call.error')).toHaveLength(2 * texts.length + 1)
  })
}

function registerSkips(service: () => Service): void {
  test('[EXT4] a message that skips a number has no effect, and its sender hears which number comes next', async () => {
    const pair = await connectExtendedPair(service())
    const callUuid = await answeredCall(pair)
    const { caller, callee } = pair
    const relay = (n: unknown, mark: number) =>
      JSON.stringify({ event: 'webrtc.ice_candidate', request_id: `n-${n}`, n, data: candidate(callUuid, mark) })
    // The invite was 1. More than ten in a row, which do not close the socket as malformed ones would [ENV1].
    caller.raw(...upTo(12).map((at) => relay(4 + at, at)))
    for (let at = 0; at < 12; at++) {
      const { error, request_id } = await caller.next('call.error')
      expect(error).toMatchObject({ code: 'INVALID_MESSAGE', field: 'n', expected_n: 2 })
      expect(request_id).toBe(`n-${4 + at}`)
    }
    // Relays that are on their way count, too, and so does a ping.
    caller.raw(relay(2, 20), relay(3, 21), '{"type":"ping","n":4}', relay(5, 22), relay(7, 23), relay(6, 24))
    expect((await caller.next('call.error')).error).toMatchObject({ code: 'INVALID_MESSAGE', expected_n: 6 })
    await caller.next('call.ack', ({ request_id }) => request_id === 'n-6')
    caller.raw(relay('7', 25))
    expect((await caller.next('call.error')).error).toMatchObject({ code: 'INVALID_MESSAGE', expected_n: 7 })
    await callee.settle()
    expect(candidatesOf(callee, callUuid)).toEqual([20, 21, 22, 24])
    await caller.die()
    expect((await caller.connect()).data).toMatchObject({ recovered: true, handled: 6 })
  })

  test('[EXT4] [RES2] after recovered: false the numbers begin again at 1', async () => {
    const { caller } = await connectExtendedPair(service())
    for (const id of ['a', 'b']) await caller.request('no.such.event', {}, id).catch(() => {})
    const old = caller.point as ResumePoint
    await caller.die()
    expect((await caller.connect({ ...old, epoch: 'another' })).data).toMatchObject({ recovered: false, handled: 0 })
    caller.raw(
      '{"event":"no.such.event","request_id":"old","n":3}',
      '{"event":"no.such.event","request_id":"new","n":1}',
    )
    const [skipped, first] = [await caller.next('call.error', of('old')), await caller.next('call.error', of('new'))]
    expect([skipped, first].map(({ error }) => error.code)).toEqual(['INVALID_MESSAGE', 'UNKNOWN_EVENT'])
    expect(skipped.error.expected_n).toBe(1)
  })
}

const of = (id: string) => (message: { request_id?: string | undefined }) => message.request_id === id

/** Invites and everything after them in one write, and the network is gone. */
function registerCuts(service: () => Service): void {
  test(`[EXT4] [INV3] cut right after an invite, ${rounds} rounds: one call, one ring, one reply`, async () => {
    const { caller, callee, callerId, calleeId } = await connectExtendedPair(service())
    const handled = new Set<number>()
    for (let round = 0; round < rounds; round++) {
      const invited = caller.request('call.invite', inviteOf(calleeId))
      // Every other time it gets as far as the ring, and only the reply may be lost.
      if (round % 2 === 0) await callee.next('call.ringing')
      await caller.die()
      const hello = await caller.connect()
      expect(hello.data.recovered).toBe(true)
      handled.add(hello.data.handled - 2 * round)
      const { data } = await invited
      await caller.request('call.cancel', { call_uuid: data.call_uuid })
    }
    await callee.settle()
    expect(callee.events()).toEqual(upTo(rounds).flatMap(() => ['call.ringing', 'call.cancelled']))
    const token = await service().token({ user_id: callerId, role: 'customer' })
    expect((await service().history(token, '?limit=100')).data).toHaveLength(rounds)
    expect(caller.unknown).toEqual([])
    expectWhole(caller, callee)
    expect([...handled].every((n) => n === 0 || n === 1)).toBe(true)
  })

  test(`[EXT4] [ORD1] cut with many requests under way, ${rounds} rounds: each takes effect once, in order`, async () => {
    const { caller, callee, calleeId } = await connectExtendedPair(service())
    for (let round = 0; round < rounds; round++) {
      // Each invite is a commit: those after the first wait for their turn when the socket is gone.
      const uuids = upTo(4).map(() => crypto.randomUUID())
      const replies = uuids.flatMap((callUuid) => [
        caller.request('call.invite', inviteOf(calleeId, { call_uuid: callUuid })),
        caller.request('webrtc.ice_candidate', candidate(callUuid, 0)),
        caller.request('call.cancel', { call_uuid: callUuid }),
      ])
      // Some of it is on its way, some of it has come and waits.
      if (round % 2 === 0) await callee.next('call.ringing', ({ data }) => data.call_uuid === uuids[0])
      await caller.die()
      await caller.connect()
      const events = (await Promise.all(replies)).map(({ event, data }) => `${event} ${data.status}`)
      expect(events).toEqual(upTo(4).flatMap(() => ['call.invited ringing', 'call.ack ringing', 'call.ack cancelled']))
    }
    await callee.settle()
    expect(callee.events()).toEqual(upTo(4 * rounds).flatMap(() => ['call.ringing', 'call.cancelled']))
    expectWhole(caller, callee)
  })

  test(`[EXT4] [RES1] more than 512 replies unseen: the resume brings all of them, or is refused`, async () => {
    const { caller } = await connectExtendedPair(service())
    caller.answersPings = false
    caller.pause()
    const asked = 600
    for (let n = 0; n < asked; n++) void caller.request('no.such.event', {}, `many-${n}`).catch(() => {})
    // Another session knows when all of them took effect: a request after them reaches it.
    await heardOf(service(), caller)
    await caller.die()
    const { data } = await caller.connect()
    if (data.recovered) {
      await caller.settle()
      const seen = caller.all.filter(({ request_id: id }) => id?.startsWith('many-'))
      expect(seen).toHaveLength(asked)
    } else expect(data.handled).toBe(0)
  })
}

/** The client calls somebody, who hears of it: everything that it asked for before has taken effect. */
async function heardOf(service: Service, client: ExtendedClient): Promise<void> {
  const calleeId = someone('callee')
  const callee = await service.connect({ user_id: calleeId, role: 'agent' })
  client.send('call.invite', inviteOf(calleeId))
  await callee.next('call.ringing')
}

function registerReplaced(service: () => Service): void {
  test(`[EXT4] [RES1] a socket replaced while it still sends, ${rounds} rounds: nothing twice, the newest wins`, async () => {
    const pair = await connectExtendedPair(service())
    const callUuid = await answeredCall(pair)
    let mark = 0
    for (let round = 0; round < rounds; round++) {
      const replies = upTo(10).map(() => pair.caller.request('webrtc.ice_candidate', candidate(callUuid, mark++)))
      const before = pair.caller.closed
      const hello = pair.caller.next('auth.ok')
      pair.caller.supersede()
      expect((await hello).data.recovered).toBe(true)
      expect((await before).code).toBe(4409)
      await Promise.all(replies)
    }
    // From another node the last may come a moment after its acknowledgement.
    await pair.callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate === `candidate:${mark - 1}`)
    await pair.callee.settle()
    expect(candidatesOf(pair.callee, callUuid)).toEqual(upTo(mark))
  })

  test(`[RES1] several sockets at once for one session, ${rounds} rounds: one is left, and it works`, async () => {
    const pair = await connectExtendedPair(service())
    const callUuid = await answeredCall(pair)
    let mark = 0
    for (let round = 0; round < rounds; round++) {
      // The old socket is at a commit while the others come.
      const invited = pair.caller.request('call.invite', inviteOf(someone('nobody')))
      const closes: Promise<number>[] = []
      for (let n = 0; n < 3; n++) {
        closes.push(pair.caller.closed.then(({ code }) => code))
        pair.caller.supersede()
      }
      expect(await Promise.all(closes)).toEqual([4409, 4409, 4409])
      await pair.caller.request('call.cancel', { call_uuid: (await invited).data.call_uuid })
      await pair.callee.request('webrtc.ice_candidate', candidate(callUuid, mark++))
      await pair.caller.next('webrtc.ice_candidate')
    }
    expect(candidatesOf(pair.caller, callUuid)).toEqual(upTo(mark))
  })
}

function registerRate(service: () => Service): void {
  test('[EXT4] [WS7] what is refused for its rate is answered in its turn, and its number counts', async () => {
    const caller = await connectExtended(service(), { user_id: someone('caller'), role: 'customer' })
    const replies = await Promise.all(upTo(20).map((n) => caller.request('no.such.event', {}, `r${n}`)))
    const codes = replies.map(({ error }) => error.code)
    expect(codes.slice(0, 10)).toEqual(upTo(10).map(() => 'UNKNOWN_EVENT'))
    expect(codes.slice(11)).toContain('RATE_LIMITED')
    const order = caller.all.flatMap(({ request_id: id }) => (id === undefined ? [] : [id]))
    expect(order).toEqual(upTo(20).map((n) => `r${n}`))
    const point = { ...(caller.point as ResumePoint), n: 10 }
    await caller.die()
    const seen = caller.all.length
    expect((await caller.connect(point)).data).toMatchObject({ recovered: true, handled: 20 })
    await caller.settle()
    const again = caller.all.slice(seen + 1, -1).map(({ request_id: id, error }) => [id, error.code])
    // Those whose pong proved that they had arrived are not told again.
    const owed = upTo(10).map((n) => [`r${10 + n}`, codes[10 + n]])
    expect(owed.slice(owed.length - again.length)).toEqual(again as string[][])
  })

  test('[EXT4] [WS7] before a number would be lost the socket is closed: the resume asks for it again', async () => {
    const caller = await connectExtended(service(), { user_id: someone('caller'), role: 'customer' })
    const ids = upTo(50).map((n) => `r${n}`)
    const replies = ids.map((id) => caller.request('no.such.event', {}, id))
    for (let handled = 0; handled < ids.length; ) {
      expect((await caller.closed).code).toBe(4429)
      const { data } = await caller.connect()
      expect(data.recovered).toBe(true)
      // Ten that pass and ten that are refused, each time.
      expect(data.handled).toBeGreaterThanOrEqual(Math.min(ids.length, handled + 20))
      handled = data.handled
      if (ids.length - handled <= 20) break
    }
    await Promise.all(replies)
    const answered = caller.all.flatMap(({ request_id: id }) => (id === undefined ? [] : [id]))
    expect(answered).toEqual(ids)
  })
}

function expectWhole(...clients: readonly ExtendedClient[]): void {
  const { findings } = check(clients.map(({ trace }) => trace))
  const { lost, ...others } = findings
  expect(Object.values(others).flat()).toEqual([])
}
