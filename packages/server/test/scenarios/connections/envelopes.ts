import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Client } from '@ringwire/testkit/client'
import { acceptedCall, candidate, connectPair, invite, someone } from '@ringwire/testkit/flows'
import { encodeFrame, opcodes } from '@ringwire/testkit/frames'
import type { Service } from '@ringwire/testkit/service'
import type { StartService } from './start.ts'

/** Messages that are wrong in themselves, and those that only look so [ENV1 to ENV5, WS6]. */
export function registerEnvelopeScenarios(name: string, start: StartService): void {
  describe(`${name}: envelopes`, () => {
    let service: Service
    beforeAll(async () => {
      service = await start({ RINGWIRE_WS_RATE: 'off' })
    })
    afterAll(() => service.dispose())

    const guest = () => service.connect({ user_id: someone('guest'), role: 'agent' })

    const malformed: [string, string, string | undefined][] = [
      ['no JSON', '{"event":', undefined],
      ['text around JSON', ' {"event":"call.end"} x', undefined],
      ['an array', '[{"event":"call.end"}]', undefined],
      ['a string', '"call.end"', undefined],
      ['a number', '12', undefined],
      ['null', 'null', undefined],
      ['true', 'true', undefined],
      ['two BOMs before JSON', '\ufeff\ufeff{"event":"call.end"}', undefined],
      ['a request_id with NUL', '{"event":"call.end","request_id":"\\u0000"}', undefined],
      ['a request_id with half a character', '{"event":"call.end","request_id":"a\\ud800"}', undefined],
      ['a NUL', '\0', undefined],
      ['no event', '{"request_id":"r1","data":{}}', 'r1'],
      ['a null event', '{"event":null,"request_id":"r2"}', 'r2'],
      ['a number for an event', '{"event":1,"request_id":"r3"}', 'r3'],
      ['an array of data', '{"event":"call.end","request_id":"r4","data":[]}', 'r4'],
      ['a string of data', '{"event":"call.end","request_id":"r5","data":"x"}', 'r5'],
      ['a number of data', '{"event":"call.end","request_id":"r6","data":0}', 'r6'],
      ['a number for request_id', '{"event":"call.end","request_id":7}', undefined],
      ['an object for request_id', '{"event":"call.end","request_id":{}}', undefined],
      ['a request_id of 129 bytes', `{"event":"call.end","request_id":"${'é'.repeat(64)}a"}`, undefined],
      ['an object nested too deep to read', `${'{"event":'.repeat(6000)}1${'}'.repeat(6000)}`, undefined],
    ]
    for (const [what, text, requestId] of malformed) {
      test(`[ENV1] ${what}: INVALID_MESSAGE in both shapes, request_id echoed where it is one`, async () => {
        const client = await guest()
        client.text(text)
        const answer = await client.next('call.error')
        expect(answer).toEqual({
          event: 'call.error',
          ...(requestId === undefined ? {} : { request_id: requestId }),
          error: { code: 'INVALID_MESSAGE', message: expect.any(String), ...fieldOf(answer) },
          data: { error: answer.error },
        })
        await client.settle()
        await client.close()
      })
    }

    test('[ENV1] an empty text, a bare ping and heartbeats of libraries are ignored', async () => {
      const client = await guest()
      for (const text of ['', 'ping', '{"type":"ping"}', '{"event":"ping","data":1}', '\ufeff{"type":"ping"}']) {
        client.text(text)
        client.raw(encodeFrame(opcodes.binary, text))
      }
      await client.settle()
      expect(client.events()).toEqual(['auth.ok'])
    })

    test('[ENV1] a byte order mark before a message is ignored, in a text and in a binary frame', async () => {
      const client = await guest()
      client.text('\ufeff{"event":"test.a","request_id":"text"}')
      expect(await client.error('text')).toMatchObject({ code: 'UNKNOWN_EVENT' })
      client.raw(encodeFrame(opcodes.binary, '\ufeff{"event":"test.a","request_id":"binary"}'))
      expect(await client.error('binary')).toMatchObject({ code: 'UNKNOWN_EVENT' })
    })

    test('[ENV1] a binary frame with JSON is read as text; one with bytes that are no text is malformed', async () => {
      const client = await guest()
      client.raw(encodeFrame(opcodes.binary, '{"event":"test.é","request_id":"ü"}'))
      expect(await client.error('ü')).toMatchObject({ code: 'UNKNOWN_EVENT' })
      client.raw(encodeFrame(opcodes.binary, Buffer.from([0x7b, 0xc3, 0x28, 0x7d])))
      expect((await client.next('call.error')).error.code).toBe('INVALID_MESSAGE')
    })

    test('[ENV1] ten malformed in a row: ten errors, then 4400; nothing after the tenth is heard', async () => {
      const client = await guest()
      for (let i = 0; i < 10; i++) client.text('{')
      client.send('test.unknown', {}, 'late')
      expect(await client.closed).toMatchObject({ code: 4400 })
      expect(client.events()).toEqual(['auth.ok', ...Array.from({ length: 10 }, () => 'call.error')])
      expect(client.all.slice(1).every(({ error }) => error.code === 'INVALID_MESSAGE')).toBe(true)
    })

    test('[ENV1] a good one in between begins the count again, whatever is wrong with what it asks', async () => {
      const client = await guest()
      for (const good of ['{"event":"test.unknown"}', '{"event":"call.end","data":{}}']) {
        for (let i = 0; i < 9; i++) client.text('nonsense')
        client.text(good)
      }
      for (let i = 0; i < 9; i++) client.raw(encodeFrame(opcodes.binary, Buffer.from([0xff])))
      await client.settle()
      for (let i = 0; i < 10; i++) client.raw(encodeFrame(opcodes.binary, Buffer.from([0xff])))
      expect(await client.closed).toMatchObject({ code: 4400 })
    })

    test('[ENV2] an error that belongs to a request names it; one of the same code that does not has no request_id', async () => {
      const client = await guest()
      client.send('call.end', { call_uuid: 'x' }, 'named')
      const named = await client.next('call.error')
      expect(named).toEqual({
        event: 'call.error',
        request_id: 'named',
        error: { code: 'INVALID_PAYLOAD', message: expect.any(String), field: 'call_uuid' },
        data: { error: named.error },
      })
      client.send('call.end', { call_uuid: 'x' })
      const unnamed = await client.next('call.error')
      expect(unnamed).not.toHaveProperty('request_id')
      expect(unnamed.data.error).toEqual(named.error)
    })

    test('[ENV3] unknown events, also those of the service: UNKNOWN_EVENT, and the socket stays', async () => {
      const client = await guest()
      const unknown = [
        'call.ringing',
        'auth.ok',
        'call.error',
        'call.INVITE',
        '',
        '__proto__',
        'toString',
        'session.reset',
      ]
      for (let round = 0; round < 4; round++) {
        for (const event of unknown) client.send(event, {}, `${round}-${event}`)
        for (const event of unknown)
          expect(await client.error(`${round}-${event}`)).toMatchObject({ code: 'UNKNOWN_EVENT' })
      }
      await client.settle()
    })

    test('[ENV1] null and absent data are the same: what is required is missing', async () => {
      const client = await guest()
      for (const data of ['', ',"data":null', ',"data":{}']) {
        client.text(`{"event":"call.end","request_id":"r"${data}}`)
        expect(await client.error('r')).toMatchObject({ code: 'INVALID_PAYLOAD', field: 'call_uuid' })
      }
    })

    test('[ENV3] unknown fields are ignored everywhere; null stands for an optional one that is absent', async () => {
      const pair = await connectPair(service)
      const data = {
        callee_user_id: pair.calleeId,
        callee_role: 'agent',
        context_type: null,
        context_id: null,
        call_type: null,
        call_uuid: null,
        ring_timeout_ms: null,
        metadata: null,
        colour: { deep: [1] },
      }
      pair.caller.text(JSON.stringify({ event: 'call.invite', request_id: null, data, version: 7, seq: 'x' }))
      const invited = await pair.caller.next('call.invited')
      expect(invited).not.toHaveProperty('request_id')
      const ringing = await pair.callee.next('call.ringing')
      expect(ringing.data).toMatchObject({ context_type: 'order', context_id: 'order-1', call_type: 'audio' })
      expect(ringing.data).not.toHaveProperty('colour')
    })

    test('[ENV3] sdp and candidate objects pass through whole; a null candidate is accepted and not relayed', async () => {
      const pair = await connectPair(service)
      const callUuid = await acceptedCall(pair)
      const sdp = { type: 'offer', sdp: 'v=0\r\n', munged: { a: [null, 1.5, '\u2028'] }, '': 0 }
      pair.caller.send('webrtc.offer', { call_uuid: callUuid, sdp, extra: 'kept' }, 'r')
      expect((await pair.callee.next('webrtc.offer')).data).toEqual({
        call_uuid: callUuid,
        sdp,
        extra: 'kept',
        from_user_id: pair.callerId,
        from_role: 'customer',
      })
      const candidates = [
        {
          candidate: 'candidate:1 1 udp 1 192.0.2.1 9 typ host',
          sdpMid: '0',
          sdpMLineIndex: 0,
          usernameFragment: 'abcd',
        },
        { candidate: '', sdpMid: null, sdpMLineIndex: null },
        { candidate: '' },
        { candidate: 'x', sdpMLineIndex: 65535, relayProtocol: 'tls' },
      ]
      for (const it of [null, ...candidates, null]) {
        pair.caller.send('webrtc.ice_candidate', { call_uuid: callUuid.toUpperCase(), candidate: it })
      }
      for (const it of candidates) {
        const { data } = await pair.callee.next('webrtc.ice_candidate')
        expect(data.candidate).toEqual(it)
        expect(data.call_uuid).toBe(callUuid)
      }
      await pair.caller.settle()
      await pair.callee.settle()
      expect(pair.caller.events()).not.toContain('call.error')
      expect(pair.callee.events().filter((event) => event === 'webrtc.ice_candidate')).toHaveLength(candidates.length)
    })

    test('[REL3] who sent a relay is what the token says, whatever the sender writes', async () => {
      const pair = await connectPair(service)
      const callUuid = await acceptedCall(pair)
      const forged = { from_user_id: 'the-boss', from_role: 'admin', ...candidate(callUuid, 1) }
      pair.caller.send('webrtc.ice_candidate', forged)
      const { data } = await pair.callee.next('webrtc.ice_candidate')
      expect(data).toMatchObject({ from_user_id: pair.callerId, from_role: 'customer' })
    })

    test('[ENV3] sdp.type must match the event', async () => {
      const pair = await connectPair(service)
      const callUuid = await acceptedCall(pair)
      const wrong: [string, unknown][] = [
        ['webrtc.offer', { type: 'answer', sdp: 'v=0' }],
        ['webrtc.answer', { type: 'offer', sdp: 'v=0' }],
        ['webrtc.offer', { type: 'rollback', sdp: '' }],
        ['webrtc.offer', { sdp: 'v=0' }],
        ['webrtc.offer', 'v=0'],
        ['webrtc.offer', null],
        ['webrtc.offer', { type: 'offer', sdp: 5 }],
      ]
      for (const [event, sdp] of wrong) {
        pair.caller.send(event, { call_uuid: callUuid, sdp }, 'r')
        const error = await pair.caller.error('r')
        expect(error.code).toBe('INVALID_PAYLOAD')
        expect(error.field).toStartWith('sdp')
      }
      await pair.callee.settle()
      expect(pair.callee.events()).toEqual(['auth.ok', 'call.ringing'])
    })

    test('[ENV4] no push carries a request_id; a reply carries its request’s', async () => {
      const pair = await connectPair(service)
      const { caller, callee } = pair
      caller.send('call.invite', { callee_user_id: pair.calleeId, callee_role: 'agent' }, 'the-invite')
      const invited = await caller.next('call.invited')
      expect(invited.request_id).toBe('the-invite')
      const callUuid = invited.data.call_uuid
      caller.send('webrtc.offer', { call_uuid: callUuid, sdp: { type: 'offer', sdp: 'v=0' } }, 'the-offer')
      await callee.next('call.ringing')
      callee.send('call.accept', { call_uuid: callUuid }, 'the-accept')
      await caller.next('call.accepted')
      await callee.next('webrtc.offer')
      callee.send('webrtc.answer', { call_uuid: callUuid, sdp: { type: 'answer', sdp: 'v=0' } }, 'the-answer')
      await caller.next('webrtc.answer')
      caller.send('call.connected', { call_uuid: callUuid }, 'the-connected')
      await caller.settle()
      callee.send('call.end', { call_uuid: callUuid }, 'the-end')
      await caller.next('call.ended')
      await callee.settle()
      for (const message of [...caller.all, ...callee.all]) {
        const ours = message.event === 'call.invited' || message.event === 'call.error'
        if (!ours) expect(message).not.toHaveProperty('request_id')
      }
      // Its own transitions are not pushed back at anybody.
      expect(callee.events()).toEqual(['auth.ok', 'call.ringing', 'webrtc.offer'])
    })

    test('[ENV5] INVALID_PAYLOAD names the field; nothing of the value comes back', async () => {
      const client = await guest()
      const marker = 'MARKER-that-must-not-come-back'
      const right = { callee_user_id: 'x', callee_role: 'customer' }
      const wrong: [string, object, string][] = [
        ['call.invite', { callee_role: 'customer' }, 'callee_user_id'],
        ['call.invite', { callee_user_id: 'x' }, 'callee_role'],
        ['call.invite', { ...right, callee_user_id: '  ' }, 'callee_user_id'],
        ['call.invite', { ...right, callee_user_id: { marker } }, 'callee_user_id'],
        ['call.invite', { ...right, callee_user_id: `${marker}\0` }, 'callee_user_id'],
        ['call.invite', { ...right, callee_user_id: `${marker}\ud800` }, 'callee_user_id'],
        ['call.invite', { ...right, ring_timeout_ms: marker }, 'ring_timeout_ms'],
        ['call.invite', { ...right, ring_timeout_ms: 0 }, 'ring_timeout_ms'],
        ['call.invite', { ...right, ring_timeout_ms: 1.5 }, 'ring_timeout_ms'],
        ['call.invite', { ...right, ring_timeout_ms: -1e300 }, 'ring_timeout_ms'],
        ['call.invite', { ...right, call_uuid: marker }, 'call_uuid'],
        ['call.invite', { ...right, metadata: [marker] }, 'metadata'],
        ['call.invite', { ...right, metadata: marker }, 'metadata'],
        // A hang-up only fails for its call_uuid [END1].
        ['call.reject', { call_uuid: marker, reason: marker }, 'call_uuid'],
        ['call.end', { reason: marker }, 'call_uuid'],
        ['call.accept', { call_uuid: `${crypto.randomUUID()}\n` }, 'call_uuid'],
        ['webrtc.ice_candidate', { call_uuid: crypto.randomUUID() }, 'candidate'],
        [
          'webrtc.ice_candidate',
          { call_uuid: crypto.randomUUID(), candidate: { sdpMid: marker } },
          'candidate.candidate',
        ],
        [
          'webrtc.ice_candidate',
          { call_uuid: crypto.randomUUID(), candidate: { candidate: '', sdpMLineIndex: -1 } },
          'candidate.sdpMLineIndex',
        ],
      ]
      for (const [event, data, field] of wrong) {
        client.send(event, data, 'r')
        expect(await client.error('r')).toMatchObject({ code: 'INVALID_PAYLOAD', field })
      }
      expect(JSON.stringify(client.all)).not.toContain(marker)
    })

    registerSizes(() => service)
  })
}

/** Sizes at the exact byte [WS6]. Bytes are of UTF-8, so every bound is tried with characters of several bytes too. */
function registerSizes(service: () => Service): void {
  const guest = (): Promise<Client> => service().connect({ user_id: someone('guest'), role: 'agent' })

  /** An envelope of exactly `bytes` bytes. */
  const sized = (bytes: number, unit: string) => {
    const frame = (pad: string) => JSON.stringify({ event: 'test.size', request_id: 'size', pad })
    const left = bytes - Buffer.byteLength(frame(''))
    const size = Buffer.byteLength(unit)
    return frame(unit.repeat(Math.floor(left / size)) + 'a'.repeat(left % size))
  }

  for (const unit of ['a', 'é', '€', '😀']) {
    for (const opcode of [opcodes.text, opcodes.binary]) {
      test(`[WS6] 65,536 bytes of ${unit} (opcode ${opcode}) are read, one more closes with 1009`, async () => {
        const client = await guest()
        client.raw(encodeFrame(opcode, sized(65_536, unit)))
        expect(await client.error('size')).toMatchObject({ code: 'UNKNOWN_EVENT' })
        client.raw(encodeFrame(opcode, sized(65_537, unit)))
        expect(await client.closed).toMatchObject({ code: 1009 })
      })
    }
  }

  const oversized: [string, Buffer[]][] = [
    ['bytes that are no text', [encodeFrame(opcodes.binary, Buffer.alloc(65_537, 0xff))]],
    ['far over it', [encodeFrame(opcodes.text, 'a'.repeat(1024 * 1024))]],
    [
      'in fragments',
      [
        encodeFrame(opcodes.text, ' '.repeat(40_000), { fin: false }),
        encodeFrame(opcodes.continuation, ' '.repeat(25_537)),
      ],
    ],
    [
      'in fragments without an end',
      [
        encodeFrame(opcodes.text, ' '.repeat(60_000), { fin: false }),
        encodeFrame(opcodes.continuation, ' '.repeat(60_000), { fin: false }),
      ],
    ],
    ['that is not sent to its end', [encodeFrame(opcodes.text, ' '.repeat(200_000)).subarray(0, 150_000)]],
    ['claimed, not sent', [Buffer.from([0x81, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0])]],
    ['claimed with the highest bit', [Buffer.from([0x82, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])]],
  ]
  for (const [what, frames] of oversized) {
    test(`[WS6] a message over 64 KiB, ${what}: 1009`, async () => {
      const client = await guest()
      for (const frame of frames) client.raw(frame)
      expect(await client.closed).toMatchObject({ code: 1009 })
    })
  }

  test('[WS6] sdp of 49,152 bytes and a candidate of 4,096 pass, one more is PAYLOAD_TOO_LARGE and the socket stays', async () => {
    const pair = await connectPair(service())
    const callUuid = await acceptedCall(pair)
    for (const unit of ['a', '€', '😀']) {
      const text = (bytes: number) => {
        const size = Buffer.byteLength(unit)
        return unit.repeat(Math.floor(bytes / size)) + 'b'.repeat(bytes % size)
      }
      const sdp = (bytes: number) => ({ call_uuid: callUuid, sdp: { type: 'offer', sdp: text(bytes) } })
      const ice = (bytes: number) => ({ call_uuid: callUuid, candidate: { candidate: text(bytes) } })
      pair.caller.send('webrtc.offer', sdp(49_152))
      expect((await pair.callee.next('webrtc.offer')).data.sdp.sdp).toBe(text(49_152))
      pair.caller.send('webrtc.offer', sdp(49_153), 'r')
      expect(await pair.caller.error('r')).toMatchObject({ code: 'PAYLOAD_TOO_LARGE', field: 'sdp.sdp' })
      pair.caller.send('webrtc.ice_candidate', ice(4096))
      expect((await pair.callee.next('webrtc.ice_candidate')).data.candidate.candidate).toBe(text(4096))
      pair.caller.send('webrtc.ice_candidate', ice(4097), 'r')
      expect(await pair.caller.error('r')).toMatchObject({ code: 'PAYLOAD_TOO_LARGE', field: 'candidate.candidate' })
    }
  })

  test('[WS6] an id of 255 bytes is taken, one of 256 is not', async () => {
    const client = await guest()
    const to = (calleeUserId: string) => {
      client.send('call.invite', { callee_user_id: calleeUserId, callee_role: 'customer' }, 'r')
    }
    for (const id of ['a'.repeat(255), '€'.repeat(85), `${'😀'.repeat(63)}abc`]) {
      to(id)
      const invited = await client.next('call.invited')
      expect(invited.request_id).toBe('r')
      client.send('call.cancel', { call_uuid: invited.data.call_uuid })
    }
    for (const id of ['a'.repeat(256), `${'€'.repeat(85)}a`, '😀'.repeat(64)]) {
      to(id)
      expect(await client.error('r')).toMatchObject({ code: 'INVALID_PAYLOAD', field: 'callee_user_id' })
    }
  })

  test('[WS6] a request_id of 128 bytes is echoed; [INV1] metadata of 1,024 bytes passes, one more does not', async () => {
    const client = await guest()
    for (const requestId of ['r'.repeat(128), 'é'.repeat(64), '😀'.repeat(32)]) {
      client.send('test.unknown', {}, requestId)
      expect(await client.error(requestId)).toMatchObject({ code: 'UNKNOWN_EVENT' })
    }
    const calleeId = someone('callee')
    const callee = await service().connect({ user_id: calleeId, role: 'customer' })
    const metadata = (bytes: number) => ({ pad: 'a'.repeat(bytes - 10) })
    client.send('call.invite', { callee_user_id: calleeId, callee_role: 'customer', metadata: metadata(1025) }, 'big')
    expect(await client.error('big')).toMatchObject({ code: 'PAYLOAD_TOO_LARGE', field: 'metadata' })
    await invite(client, calleeId, { callee_role: 'customer', metadata: metadata(1024) })
    expect((await callee.next('call.ringing')).data.metadata).toEqual(metadata(1024))
  })
}

function fieldOf(answer: { error?: { field?: string } }): { field?: string } {
  return answer.error?.field === undefined ? {} : { field: answer.error.field }
}
