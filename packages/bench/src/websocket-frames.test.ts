import { describe, expect, test } from 'bun:test'
import {
  encodeMaskedFrame,
  FrameScanner,
  type FrameSink,
  frameSize,
  newMaskKey,
  Opcode,
  type Split,
} from './websocket-frames.ts'

/** A frame as a server sends it. */
function serverFrame(payload: Uint8Array, opcode: number = Opcode.text): Uint8Array {
  const length = payload.length
  const head =
    length < 126
      ? [0x80 | opcode, length]
      : length < 0x10000
        ? [0x80 | opcode, 126, length >> 8, length & 255]
        : [
            0x80 | opcode,
            127,
            0,
            0,
            0,
            0,
            (length >> 24) & 255,
            (length >> 16) & 255,
            (length >> 8) & 255,
            length & 255,
          ]
  return new Uint8Array([...head, ...payload])
}

function joined(...parts: Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts))
}

function bytes(length: number, seed = 0): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => (i * 31 + seed) & 255)
}

/** A scanner that writes down what it hands on. */
function recording(split?: Split) {
  const messages: Uint8Array[] = []
  const controls: [number, Uint8Array][] = []
  const sink: FrameSink = {
    onMessage: (payload) => messages.push(Uint8Array.from(payload)),
    onControl: (opcode, payload) => controls.push([opcode, Uint8Array.from(payload)]),
  }
  const scanner = new FrameScanner(sink, split)
  return { scanner, messages, controls }
}

const LENGTHS = [0, 1, 5, 125, 126, 400, 65_535, 65_536, 70_000]

describe('encodeMaskedFrame', () => {
  test.each(LENGTHS)('%i bytes reach a real server whole', async (length) => {
    const { promise, resolve } = Promise.withResolvers<Uint8Array>()
    using server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: (request, self) => (self.upgrade(request) ? undefined : new Response(null, { status: 426 })),
      websocket: { message: (_socket, message) => resolve(new Uint8Array(message as Buffer)) },
    })
    const payload = bytes(length)
    const frame = encodeMaskedFrame(payload, newMaskKey(), Opcode.binary)
    expect(frame.length).toBe(frameSize(length, true))
    const socket = await Bun.connect({ hostname: '127.0.0.1', port: server.port!, socket: upgradeThenSend(frame) })
    expect(await promise).toEqual(payload)
    socket.terminate()
  })

  test('a mask key is never zero', () => {
    for (let i = 0; i < 1000; i++) expect(newMaskKey().some((byte) => byte !== 0)).toBe(true)
  })
})

function upgradeThenSend(frame: Uint8Array) {
  let unsent = frame
  const push = (socket: { write(data: Uint8Array): number }) => {
    unsent = unsent.subarray(socket.write(unsent))
  }
  return {
    open(socket: { write(data: string): number }) {
      socket.write(
        'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
          'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
      )
    },
    data(socket: { write(data: Uint8Array): number }) {
      push(socket)
    },
    drain(socket: { write(data: Uint8Array): number }) {
      push(socket)
    },
  }
}

describe('FrameScanner', () => {
  test.each(LENGTHS)('collects a frame of %i bytes', (length) => {
    const { scanner, messages } = recording()
    expect(scanner.push(serverFrame(bytes(length)))).toBe(0)
    expect(messages).toEqual([bytes(length)])
  })

  test('counts frames of the expected length and hands the others on', () => {
    const { scanner, messages, controls } = recording()
    scanner.expect(bytes(300))
    const stream = joined(
      serverFrame(bytes(300)),
      serverFrame(bytes(0)),
      serverFrame(bytes(300)),
      serverFrame(bytes(7), Opcode.ping),
      serverFrame(bytes(301)),
      serverFrame(bytes(300)),
    )
    expect(scanner.push(stream)).toBe(3)
    expect(messages).toEqual([bytes(0), bytes(301)])
    expect(controls).toEqual([[Opcode.ping, bytes(7)]])
    expect(scanner.different).toBe(0)
  })

  test('finds the same frames however the stream is cut', () => {
    const stream = joined(
      serverFrame(bytes(200)),
      serverFrame(bytes(0)),
      serverFrame(bytes(3), Opcode.ping),
      serverFrame(bytes(130, 9)),
      serverFrame(bytes(70_000)),
      serverFrame(bytes(200)),
    )
    for (const size of [1, 2, 3, 5, 7, 64, 203, 204, 205, 1000, stream.length]) {
      const { scanner, messages, controls } = recording()
      scanner.expect(bytes(200))
      let counted = 0
      for (let at = 0; at < stream.length; at += size) counted += scanner.push(stream.subarray(at, at + size))
      expect(counted).toBe(2)
      expect(messages.map((message) => message.length)).toEqual([0, 130, 70_000])
      expect(messages[1]).toEqual(bytes(130, 9))
      expect(controls).toEqual([[Opcode.ping, bytes(3)]])
    }
  })

  test('counts the messages of frames that hold several, and hands on what is between them', () => {
    const lines: Split = (payload) => {
      const text =
        Buffer.from(payload)
          .toString()
          .match(/[^\n]*\n/g) ?? []
      return text.map((line) => Buffer.from(line))
    }
    const stream = joined(
      serverFrame(Buffer.from('one\none\none\n'), Opcode.binary),
      serverFrame(Buffer.from('one\nother\none\n'), Opcode.binary),
      serverFrame(Buffer.from('one\n'), Opcode.binary),
    )
    for (const size of [1, 4, 7, stream.length]) {
      const { scanner, messages } = recording(lines)
      scanner.expect(Buffer.from('one\n'))
      let counted = 0
      for (let at = 0; at < stream.length; at += size) counted += scanner.push(stream.subarray(at, at + size))
      expect(counted).toBe(6)
      expect(messages.map((message) => Buffer.from(message).toString())).toEqual(['other\n'])
      expect(scanner.different).toBe(0)
    }
  })

  test('a text of the expected length with other bytes is noticed', () => {
    const { scanner } = recording()
    scanner.expect(bytes(50))
    for (let i = 0; i < 200; i++) scanner.push(serverFrame(bytes(50, 1)))
    expect(scanner.different).toBeGreaterThan(0)
  })

  test('a fragmented or masked frame is refused', () => {
    const { scanner } = recording()
    expect(() => scanner.push(new Uint8Array([0x01, 1, 65]))).toThrow()
    expect(() => recording().scanner.push(encodeMaskedFrame(bytes(3), newMaskKey()))).toThrow()
  })
})
