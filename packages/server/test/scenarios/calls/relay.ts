import { describe, expect, test } from 'bun:test'
import { acceptedCall, candidate, connectPair, invite } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import {
  answer,
  burst,
  connectFour,
  errorCode,
  listen,
  offer,
  quiet,
  received,
  request,
  sessionNames,
} from '../../support/sessions.ts'
import { callIn } from './call-states.ts'
import { type Start, serviceFor } from './composition.ts'

/** `webrtc.*` between the two places of a call, and nowhere else [REL1, REL2, REL3]. */
export function registerRelay(name: string, start: Start): void {
  describe(`relay, ${name}`, () => {
    const service = serviceFor(start)
    registerPlaces(service)
    registerBeforeAccept(service)
    registerBounds(service)
    registerContent(service)
    registerRefusals(service)
  })
}

const relaysOf = (client: { all: readonly { event: string; data: never }[] }) =>
  client.all.filter(({ event }) => event.startsWith('webrtc.'))
// biome-ignore lint/suspicious/noExplicitAny: the texts of whatever came.
const candidatesOf = (client: any): string[] =>
  relaysOf(client)
    .filter(({ event }) => event === 'webrtc.ice_candidate')
    .map(({ data }: { data: { candidate: { candidate: string } } }) => data.candidate.candidate)
const numbered = (count: number, from = 0) => Array.from({ length: count }, (_, n) => `candidate:${from + n}`)

function registerPlaces(service: () => Service): void {
  for (const status of ['accepted', 'connected'] as const) {
    test(`[REL1] ${status}: only the holders of the places send, and only they receive`, async () => {
      const four = await connectFour(service())
      const callUuid = await callIn(status, four)
      const news = listen(four, sessionNames)
      for (const tab of [four.callerTab, four.calleeTab]) {
        for (const [event, data] of [
          ['webrtc.offer', offer(callUuid)],
          ['webrtc.answer', answer(callUuid)],
          ['webrtc.ice_candidate', candidate(callUuid, 1)],
        ] as const) {
          expect(await errorCode(tab, event, data)).toBe('CALL_NOT_PARTICIPANT')
        }
      }
      four.caller.send('webrtc.ice_candidate', candidate(callUuid, 2))
      four.callee.send('webrtc.ice_candidate', candidate(callUuid, 3))
      await quiet(...sessionNames.map((who) => four[who]))
      const heard = news()
      expect(heard.callee.map(({ data }) => data.candidate.candidate)).toEqual(['candidate:2'])
      expect(heard.caller.map(({ data }) => data.candidate.candidate)).toEqual(['candidate:3'])
      for (const tab of [heard.callerTab, heard.calleeTab])
        expect(tab.every(({ event }) => event === 'call.error')).toBe(true)
    })
  }

  test('[REL1] a live call has no say in another one of the same people', async () => {
    const pair = await connectPair(service())
    const first = await acceptedCall(pair)
    pair.caller.send('call.end', { call_uuid: first })
    await pair.callee.next('call.ended')
    const second = await acceptedCall(pair)
    burst(pair.caller, [
      ['webrtc.ice_candidate', candidate(first, 1)],
      ['webrtc.ice_candidate', candidate(second, 2)],
    ])
    await quiet(pair.caller, pair.callee)
    expect(candidatesOf(pair.callee)).toEqual(['candidate:2'])
    expect(pair.caller.events()).not.toContain('call.error')
  })
}

function registerBeforeAccept(service: () => Service): void {
  test("[REL2] the caller's messages wait for the accept, and go in order to the session that accepts alone", async () => {
    const four = await connectFour(service())
    const callUuid = await callIn('ringing', four)
    burst(four.caller, [
      ['webrtc.offer', offer(callUuid)],
      ...numbered(50).map((_, n) => ['webrtc.ice_candidate', candidate(callUuid, n)] as const),
    ])
    await quiet(four.caller, four.callee, four.calleeTab)
    expect([relaysOf(four.callee as never), relaysOf(four.calleeTab as never)]).toEqual([[], []])
    four.calleeTab.send('call.accept', { call_uuid: callUuid })
    await quiet(four.calleeTab, four.caller, four.callee)
    four.caller.send('webrtc.ice_candidate', candidate(callUuid, 50))
    await quiet(four.caller, four.calleeTab)
    expect(relaysOf(four.calleeTab as never)[0]?.event).toBe('webrtc.offer')
    expect(candidatesOf(four.calleeTab)).toEqual(numbered(51))
    expect(relaysOf(four.callee as never)).toEqual([])
  })

  test("[REL2] what each rung session sent is kept apart: the winner's follow call.accepted, the others' are dropped", async () => {
    const four = await connectFour(service())
    const callUuid = await callIn('ringing', four)
    for (let n = 0; n < 10; n++) {
      four.callee.send('webrtc.ice_candidate', candidate(callUuid, n))
      four.calleeTab.send('webrtc.ice_candidate', candidate(callUuid, 100 + n))
    }
    await quiet(four.callee, four.calleeTab, four.caller)
    expect(relaysOf(four.caller as never)).toEqual([])
    four.calleeTab.send('call.accept', { call_uuid: callUuid })
    await quiet(four.calleeTab, four.caller)
    expect(four.caller.events()).toEqual([
      'auth.ok',
      'call.invited',
      'call.accepted',
      ...Array(10).fill('webrtc.ice_candidate'),
    ])
    expect(candidatesOf(four.caller)).toEqual(numbered(10, 100))
    expect(await errorCode(four.callee, 'webrtc.ice_candidate', candidate(callUuid, 11))).toBe('CALL_NOT_PARTICIPANT')
  })

  test('[REL2] what waited for an accept that never comes is dropped without a word', async () => {
    const four = await connectFour(service())
    const callUuid = await callIn('ringing', four)
    four.caller.send('webrtc.offer', offer(callUuid))
    four.callee.send('webrtc.ice_candidate', candidate(callUuid, 1))
    await quiet(four.caller, four.callee)
    four.callee.send('call.reject', { call_uuid: callUuid })
    await four.caller.next('call.rejected')
    await quiet(...sessionNames.map((who) => four[who]))
    for (const who of sessionNames) expect(relaysOf(four[who] as never)).toEqual([])
  })

  test('[REL2] a new call between the two starts with nothing kept', async () => {
    const pair = await connectPair(service())
    const first = await invite(pair.caller, pair.calleeId)
    pair.caller.send('webrtc.offer', offer(first, 'of the first'))
    pair.caller.send('call.cancel', { call_uuid: first })
    await pair.callee.next('call.cancelled')
    const second = await acceptedCall(pair)
    pair.caller.send('webrtc.offer', offer(second, 'of the second'))
    await quiet(pair.caller, pair.callee)
    expect(relaysOf(pair.callee as never).map(({ data }: { data: { sdp: { sdp: string } } }) => data.sdp.sdp)).toEqual([
      'of the second',
    ])
  })
}

function registerBounds(service: () => Service): void {
  test('[REL2] 256 messages a side are kept; the 257th is refused, and those before it arrive', async () => {
    const four = await connectFour(service())
    const callUuid = await callIn('ringing', four)
    for (const client of [four.caller, four.callee, four.calleeTab]) {
      burst(
        client,
        numbered(256).map((_, n) => ['webrtc.ice_candidate', candidate(callUuid, n)] as const),
      )
      const reply = await request(client, 'webrtc.ice_candidate', candidate(callUuid, 256))
      expect(reply?.error).toMatchObject({ code: 'RELAY_BUFFER_FULL', retryable: true })
      // The end of candidates is not relayed, so it needs no room.
      expect(await errorCode(client, 'webrtc.ice_candidate', { call_uuid: callUuid, candidate: null })).toBeUndefined()
    }
    four.callee.send('call.accept', { call_uuid: callUuid })
    await quiet(four.callee, four.caller)
    await quiet(four.callee, four.caller)
    expect(candidatesOf(four.callee)).toEqual(numbered(256))
    expect(candidatesOf(four.caller)).toEqual(numbered(256))
    expect(await errorCode(four.caller, 'webrtc.ice_candidate', candidate(callUuid, 256))).toBeUndefined()
  })

  test('[REL2] 256 KiB a side are kept: what goes over is refused, and what is small still fits', async () => {
    const pair = await connectPair(service())
    const callUuid = await invite(pair.caller, pair.calleeId)
    await pair.callee.next('call.ringing')
    const text = 'x'.repeat(48 * 1024)
    for (let n = 0; n < 5; n++) {
      expect(await errorCode(pair.caller, 'webrtc.offer', offer(callUuid, text))).toBeUndefined()
    }
    expect(await errorCode(pair.caller, 'webrtc.offer', offer(callUuid, text))).toBe('RELAY_BUFFER_FULL')
    expect(await errorCode(pair.caller, 'webrtc.ice_candidate', candidate(callUuid, 1))).toBeUndefined()
    pair.callee.send('call.accept', { call_uuid: callUuid })
    await quiet(pair.callee)
    await quiet(pair.callee)
    expect(relaysOf(pair.callee as never).map(({ event }) => event)).toEqual([
      ...Array(5).fill('webrtc.offer'),
      'webrtc.ice_candidate',
    ])
  })
}

function registerContent(service: () => Service): void {
  test('[REL3] who sent it is what the service knows: forged from_user_id and from_role are replaced', async () => {
    const pair = await connectPair(service())
    const callUuid = await acceptedCall(pair)
    pair.caller.send('webrtc.offer', { ...offer(callUuid), from_user_id: 'the-boss', from_role: 'admin' })
    pair.caller.text(
      `{"event":"webrtc.ice_candidate","data":{"from_role":"x","call_uuid":"${callUuid}","candidate":{"candidate":"c"},"from_user_id":null}}`,
    )
    for (const event of ['webrtc.offer', 'webrtc.ice_candidate']) {
      const { data } = await pair.callee.next(event)
      expect(data).toMatchObject({ from_user_id: pair.callerId, from_role: 'customer' })
    }
  })

  test('[REL3] [ENV3] the fields of the sender pass whole, the ones the service does not know too', async () => {
    const pair = await connectPair(service())
    const callUuid = await acceptedCall(pair)
    const sdp = 'v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=\u00e4 \ud83d\ude42 "quoted" \\ \u2028\r\n'
    const sent = [
      ['webrtc.offer', { call_uuid: callUuid, sdp: { type: 'offer', sdp, extra: [1, { two: null }] }, more: true }],
      [
        'webrtc.ice_candidate',
        { call_uuid: callUuid, candidate: { candidate: 'a', sdpMid: '0', sdpMLineIndex: 0, usernameFragment: 'uf' } },
      ],
      [
        'webrtc.ice_candidate',
        { call_uuid: callUuid, candidate: { candidate: '', sdpMid: null, sdpMLineIndex: null } },
      ],
      ['webrtc.ice_candidate', { call_uuid: callUuid, candidate: { candidate: '' } }],
    ] as const
    burst(pair.caller, sent)
    await quiet(pair.caller, pair.callee)
    expect(pair.callee.all.filter(({ event }) => event.startsWith('webrtc.'))).toEqual(
      sent.map(([event, data]) => ({ event, data: { ...data, from_user_id: pair.callerId, from_role: 'customer' } })),
    )
  })

  test('[REL4] [UUID1] what the sender wrote comes out to the letter, before the accept and after it', async () => {
    const pair = await connectPair(service())
    const callUuid = await invite(pair.caller, pair.calleeId)
    const from = `"from_user_id":${JSON.stringify(pair.callerId)},"from_role":"customer"`
    const odd = '"a":1.0, "b":1e400,"c":12345678901234567890,"d":-0,"2":"\\u00e9\\/","1":[ ],"__proto__":{"x":"😀"}'
    const sdp = '"sdp":{"sdp":"v=0\\r\\n","type":"offer","\\u0073":"\\ud83d\\ude00"}'
    const said = `${odd},"call_uuid":"${callUuid}",${sdp} `
    pair.caller.text(`{"event":"webrtc.offer","data":{${said}}}`)
    await pair.caller.settle()
    await pair.callee.next('call.ringing')
    pair.callee.send('call.accept', { call_uuid: callUuid })
    await pair.callee.next('webrtc.offer')
    expect(pair.callee.texts.at(-1)).toBe(`{"event":"webrtc.offer","data":{${said},${from}}}`)
    // With an origin of its own, and another way to write the name of the call.
    const forged = `"from_user\\u005fid":{"a":1},"call_uuid":"${callUuid.toUpperCase()}",${odd},"from_role":1,${sdp}`
    pair.caller.text(`\ufeff{"data":{${forged}},"event":"webrtc.offer"}`)
    const whole = `{"event":"webrtc.offer","data":{"call_uuid":"${callUuid}",${odd.replace(' ', '')},${sdp},${from}}}`
    await pair.callee.next('webrtc.offer')
    expect(pair.callee.texts.at(-1)).toBe(whole)
  })

  test('[REL4] a key that is there twice, NUL and half a character are refused, and reach nobody', async () => {
    const pair = await connectPair(service())
    const callUuid = await acceptedCall(pair)
    const good = `"call_uuid":"${callUuid}","candidate":{"candidate":""}`
    for (const more of [
      ',"a":1,"\\u0061":1',
      `,${good}`,
      ',"x":[{"b":{},"b":{}}]',
      ',"from_role":1,"from_role":2',
      ',"x":"\\u0000"',
      ',"x":["\\ud800"]',
      ',"\\udc00":1',
    ]) {
      pair.caller.text(`{"event":"webrtc.ice_candidate","request_id":"r","data":{${good}${more}}}`)
      expect(await pair.caller.error('r')).toMatchObject({ code: 'INVALID_PAYLOAD', field: 'data' })
    }
    pair.caller.text(`{"event":"webrtc.ice_candidate","request_id":"r","data":{},"data":{${good}}}`)
    expect(await pair.caller.error('r')).toMatchObject({ code: 'INVALID_PAYLOAD', field: 'data' })
    await quiet(pair.caller, pair.callee)
    expect(pair.callee.events()).toEqual(['auth.ok', 'call.ringing'])
  })

  test('[ENV3] a null candidate is accepted and not relayed', async () => {
    const pair = await connectPair(service())
    const callUuid = await acceptedCall(pair)
    expect(
      await errorCode(pair.caller, 'webrtc.ice_candidate', { call_uuid: callUuid, candidate: null }),
    ).toBeUndefined()
    await quiet(pair.callee)
    expect(pair.callee.events()).toEqual(['auth.ok', 'call.ringing'])
  })
}

function registerRefusals(service: () => Service): void {
  test('[ENV3] [WS6] wrong descriptions and candidates name the field and reach nobody', async () => {
    const pair = await connectPair(service())
    const callUuid = await acceptedCall(pair)
    const invalid = (field: string) => ({ code: 'INVALID_PAYLOAD', field })
    const large = { code: 'PAYLOAD_TOO_LARGE' }
    const ice = (value: unknown) => ({ call_uuid: callUuid, candidate: value })
    for (const [event, data, error] of [
      ['webrtc.offer', answer(callUuid), invalid('sdp.type')],
      ['webrtc.answer', offer(callUuid), invalid('sdp.type')],
      ['webrtc.offer', { call_uuid: callUuid }, invalid('sdp')],
      ['webrtc.offer', { call_uuid: callUuid, sdp: 'v=0' }, invalid('sdp')],
      ['webrtc.offer', { call_uuid: callUuid, sdp: { type: 'offer' } }, invalid('sdp.sdp')],
      ['webrtc.offer', { sdp: { type: 'offer', sdp: '' } }, invalid('call_uuid')],
      ['webrtc.offer', offer('not-a-uuid'), invalid('call_uuid')],
      ['webrtc.offer', offer(callUuid, 'x'.repeat(48 * 1024 + 1)), large],
      ['webrtc.answer', answer(callUuid, '\u00e4'.repeat(24 * 1024 + 1)), large],
      ['webrtc.ice_candidate', { call_uuid: callUuid }, invalid('candidate')],
      ['webrtc.ice_candidate', ice('candidate:1'), invalid('candidate')],
      ['webrtc.ice_candidate', ice({}), invalid('candidate.candidate')],
      ['webrtc.ice_candidate', ice({ candidate: '', sdpMLineIndex: -1 }), invalid('candidate.sdpMLineIndex')],
      ['webrtc.ice_candidate', ice({ candidate: '', sdpMLineIndex: '0' }), invalid('candidate.sdpMLineIndex')],
      ['webrtc.ice_candidate', ice({ candidate: '', sdpMid: 0 }), invalid('candidate.sdpMid')],
      ['webrtc.ice_candidate', ice({ candidate: 'x'.repeat(4 * 1024 + 1) }), large],
    ] as const) {
      expect((await request(pair.caller, event, data))?.error).toMatchObject(error)
    }
    for (const verb of ['accept', 'reject', 'cancel', 'end', 'connected']) {
      for (const wrong of [undefined, null, 7, '', 'not-a-uuid', `${callUuid} `]) {
        const reply = await request(pair.caller, `call.${verb}`, { call_uuid: wrong })
        expect(reply?.error).toMatchObject(invalid('call_uuid'))
      }
    }
    await quiet(pair.callee)
    expect(received(pair.callee).map(({ event }) => event)).toEqual(['auth.ok', 'call.ringing'])
    await request(pair.caller, 'webrtc.offer', offer(callUuid, 'x'.repeat(48 * 1024)))
    await pair.callee.next('webrtc.offer')
  })

  test('[LOG1] nothing of a description or a candidate is ever logged', async () => {
    const pair = await connectPair(service())
    const callUuid = await acceptedCall(pair)
    pair.caller.send('webrtc.offer', offer(callUuid, 'v=0 only-in-this-offer'))
    pair.caller.send('webrtc.answer', { call_uuid: callUuid, sdp: { type: 'only-in-this-answer', sdp: 7 } })
    pair.caller.send('call.end', { call_uuid: callUuid })
    await pair.callee.next('call.ended')
    expect(service().log).not.toContain('only-in-this')
    expect(JSON.stringify(pair.caller.all)).not.toContain('only-in-this')
  })
}
