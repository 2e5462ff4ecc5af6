import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { acceptedCall, candidate, connectPair, someone } from '@ringwire/testkit/flows'
import { encodeFrame, opcodes } from '@ringwire/testkit/frames'
import { RawSocket } from '@ringwire/testkit/raw-socket'
import { upgradeHead } from '@ringwire/testkit/raw-websocket'
import type { Service } from '@ringwire/testkit/service'
import type { StartService } from './start.ts'

const text = (payload: string | Uint8Array, options = {}) => encodeFrame(opcodes.text, payload, options)
const rest = (payload: string | Uint8Array, options = {}) => encodeFrame(opcodes.continuation, payload, options)
const envelope = (event: string, requestId: string) => JSON.stringify({ event, request_id: requestId })
const closeFrame = (code: number, reason: string | Uint8Array = '') =>
  encodeFrame(opcodes.close, Buffer.concat([Buffer.from([code >> 8, code & 0xff]), Buffer.from(reason as string)]))

/** Frames as no WebSocket library would send them (RFC 6455 section 5), and good ones in unusual pieces. */
export function registerFrameScenarios(name: string, start: StartService): void {
  describe(`${name}: frames`, () => {
    let service: Service
    beforeAll(async () => {
      // Enough for a pong on a busy machine.
      service = await start({ RINGWIRE_PING_INTERVAL_MS: '600', RINGWIRE_PONG_TIMEOUT_MS: '3000' })
    })
    afterAll(() => service.dispose())

    const guest = () => service.connect({ user_id: someone('guest'), role: 'agent' })

    test('[ENV1] a message in fragments, with control frames between them, is one message', async () => {
      const client = await guest()
      const message = Buffer.from(envelope('test.ü', 'split'))
      for (let i = 0; i < message.length; i++) {
        const last = i === message.length - 1
        const piece = message.subarray(i, i + 1)
        client.raw(i === 0 ? text(piece, { fin: last }) : rest(piece, { fin: last }))
        if (i % 7 === 0) client.raw(encodeFrame(opcodes.ping, 'still here'))
        if (i % 11 === 0) client.raw(encodeFrame(opcodes.pong, 'unasked'))
      }
      client.raw(text('', { fin: false }))
      client.raw(rest('', { fin: false }))
      client.raw(rest(envelope('test.unknown', 'empty-first')))
      expect(await client.error('split')).toMatchObject({ code: 'UNKNOWN_EVENT' })
      expect(await client.error('empty-first')).toMatchObject({ code: 'UNKNOWN_EVENT' })
    })

    test('a frame byte by byte, and many frames in one piece, are all read in order', async () => {
      const client = await guest()
      for (const byte of text(envelope('test.unknown', 'slow'))) client.raw(Buffer.from([byte]))
      expect(await client.error('slow')).toMatchObject({ code: 'UNKNOWN_EVENT' })
      const names = Array.from({ length: 100 }, (_, i) => `r${i}`)
      client.raw(Buffer.concat(names.map((it) => text(envelope('test.unknown', it)))))
      for (const it of names) expect((await client.next('call.error')).request_id).toBe(it)
    })

    test('[ORD3] frames in the same TCP segment as the handshake are not lost, and come after auth.ok', async () => {
      const token = await service.token({ user_id: someone('guest'), role: 'agent' })
      const names = Array.from({ length: 50 }, (_, i) => `early-${i}`)
      for (const lines of [[`Sec-WebSocket-Protocol: jwt, ${token}`], [`Authorization: Bearer ${token}`]]) {
        const socket = new RawSocket(service.url)
        const frames = names.map((it) => text(envelope('test.unknown', it)))
        socket.write(Buffer.concat([Buffer.from(upgradeHead(lines)), ...frames]))
        await socket.until((it) => it.texts.length > names.length, 'every answer')
        const messages = socket.texts.map((it) => JSON.parse(it))
        expect(messages[0].event).toBe('auth.ok')
        expect(messages.slice(1).map((it) => it.request_id)).toEqual(names)
        socket.destroy()
      }
    })

    const wrong: [string, Buffer[], number][] = [
      ['an unmasked text', [text(envelope('test.unknown', 'r'), { masked: false })], 1002],
      ['an unmasked ping', [encodeFrame(opcodes.ping, 'x', { masked: false })], 1002],
      ['RSV1 (compression was not agreed)', [text('{}', { rsv: 4 })], 1002],
      ['RSV2', [text('{}', { rsv: 2 })], 1002],
      ['RSV3', [text('{}', { rsv: 1 })], 1002],
      ['opcode 3', [encodeFrame(3, 'x')], 1002],
      ['opcode 15', [encodeFrame(15, 'x')], 1002],
      ['a ping of 126 bytes', [encodeFrame(opcodes.ping, Buffer.alloc(126))], 1002],
      ['a ping in fragments', [encodeFrame(opcodes.ping, 'x', { fin: false })], 1002],
      ['a continuation of nothing', [rest('x')], 1002],
      ['a text inside a fragmented text', [text('{', { fin: false }), text('{}')], 1002],
      ['text that is not UTF-8', [text(Buffer.from([0x7b, 0xc3, 0x28, 0x7d]))], 1007],
      ['a surrogate in UTF-8', [text(Buffer.from([0xed, 0xa0, 0x80]))], 1007],
      ['a character cut at the end', [text(Buffer.from([0xe2, 0x82]))], 1007],
      ['a close of one byte', [encodeFrame(opcodes.close, 'x')], 1002],
      ['close code 999', [closeFrame(999)], 1002],
      ['close code 1005', [closeFrame(1005)], 1002],
      ['close code 1006', [closeFrame(1006)], 1002],
      ['close code 5000', [closeFrame(5000)], 1002],
      ['a close reason that is not UTF-8', [closeFrame(1000, Buffer.from([0xc3, 0x28]))], 1007],
    ]
    for (const [what, frames, code] of wrong) {
      test(`${what}: closed with ${code}, nothing answered, the service goes on`, async () => {
        const client = await guest()
        for (const frame of frames) client.raw(frame)
        client.send('test.unknown', {}, 'after')
        expect((await client.closed).code).toBe(code)
        expect(client.events()).toEqual(['auth.ok'])
      })
    }

    for (const code of [1000, 1001, 1011, 3000, 4999]) {
      test(`close code ${code} of a client is answered with the same`, async () => {
        const client = await guest()
        client.raw(closeFrame(code, 'bye ü'))
        expect((await client.closed).code).toBe(code)
      })
    }

    test.concurrent('[PLACE5] a client that is closed for wrong frames has not closed: what it missed comes to its successor', async () => {
      const pair = await connectPair(service)
      const callUuid = await acceptedCall(pair)
      pair.callee.raw(encodeFrame(3, 'x'))
      expect((await pair.callee.closed).code).toBe(1002)
      for (let n = 0; n < 5; n++) pair.caller.send('webrtc.ice_candidate', candidate(callUuid, n))
      await pair.caller.settle()
      const successor = await service.connect({ user_id: pair.calleeId, role: 'agent' })
      for (let n = 0; n < 5; n++) {
        expect((await successor.next('webrtc.ice_candidate')).data.candidate.candidate).toBe(`candidate:${n}`)
      }
    })

    const silences: [string, Buffer][] = [
      ['half a frame', text(envelope('test.unknown', 'half')).subarray(0, 12)],
      ['half a header', Buffer.from([0x81])],
      ['half a fragmented message', text('{"event":', { fin: false })],
    ]
    for (const [what, bytes] of silences) {
      test.concurrent(`[WS6] ${what}, then silence: 4408, as for anybody who is silent`, async () => {
        const client = await guest()
        client.answersPings = false
        client.raw(bytes)
        expect(await client.closed).toMatchObject({ code: 4408 })
      })
    }

    test.concurrent('half a handshake holds nobody up', async () => {
      const halves = Array.from({ length: 20 }, () => new RawSocket(service.url))
      for (const half of halves) half.write(upgradeHead(['Sec-WebSocket-Protocol: jwt, abc']).slice(0, 60))
      const client = await guest()
      await client.settle()
      for (const half of halves) half.destroy()
    })
  })
}
