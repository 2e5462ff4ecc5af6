/** WebSocket messages by hand (RFC 6455, section 5): the kit sees every frame, and can end a connection in every way. */
export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

export interface Message {
  readonly opcode: number
  readonly payload: Buffer
}

/** `masked`: as clients send, and only they. */
export function encodeFrame(opcode: number, payload: Uint8Array | string, masked: boolean): Buffer {
  const body = Buffer.from(payload as Uint8Array)
  const first = 0x80 | opcode
  const head = headOf(first, body.length, masked ? 0x80 : 0)
  if (!masked) return Buffer.concat([head, body])
  const key = crypto.getRandomValues(new Uint8Array(4))
  return Buffer.concat([head, key, unmask(body, key)])
}

function headOf(first: number, length: number, mask: number): Buffer {
  if (length < 126) return Buffer.from([first, mask | length])
  if (length < 65_536) {
    const head = Buffer.from([first, mask | 126, 0, 0])
    head.writeUInt16BE(length, 2)
    return head
  }
  const head = Buffer.from([first, mask | 127, 0, 0, 0, 0, 0, 0, 0, 0])
  head.writeBigUInt64BE(BigInt(length), 2)
  return head
}

function unmask(body: Buffer, key: Uint8Array): Buffer {
  return Buffer.from(body.map((byte, index) => byte ^ (key[index % 4] ?? 0)))
}

export function closePayload(code: number | null, reason = ''): Buffer {
  if (code === null) return Buffer.alloc(0)
  const payload = Buffer.concat([Buffer.alloc(2), Buffer.from(reason)])
  payload.writeUInt16BE(code)
  return payload
}

export interface Closed {
  /** 1006 where no close frame came, 1005 where it has no code. */
  readonly code: number
  readonly reason: string
}

export function readClose(payload: Buffer): Closed {
  const code = payload.length >= 2 ? payload.readUInt16BE(0) : 1005
  return { code, reason: payload.subarray(2).toString() }
}

/** Takes bytes in any pieces, and gives whole messages; a fragmented one counts once. */
export function createMessageReader(): (bytes: Uint8Array) => Message[] {
  let buffer = Buffer.alloc(0)
  let begun: Message | undefined
  return (bytes) => {
    buffer = Buffer.concat([buffer, bytes])
    const messages: Message[] = []
    for (let frame = readFrame(buffer); frame !== undefined; frame = readFrame(buffer)) {
      buffer = buffer.subarray(frame.end)
      const { opcode, payload, isLast } = frame
      if (opcode >= opcodes.close) messages.push({ opcode, payload })
      else {
        begun = begun === undefined ? { opcode, payload } : joined(begun, payload)
        if (isLast) messages.push(begun)
        if (isLast) begun = undefined
      }
    }
    return messages
  }
}

const joined = ({ opcode, payload }: Message, more: Buffer): Message => ({
  opcode,
  payload: Buffer.concat([payload, more]),
})

interface Frame extends Message {
  readonly isLast: boolean
  /** The byte after it. */
  readonly end: number
}

function readFrame(buffer: Buffer): Frame | undefined {
  const [first = 0, second = 0] = buffer
  const short = second & 0x7f
  const lengthEnd = short === 127 ? 10 : short === 126 ? 4 : 2
  if (buffer.length < lengthEnd) return undefined
  const length = short === 127 ? Number(buffer.readBigUInt64BE(2)) : short === 126 ? buffer.readUInt16BE(2) : short
  const isMasked = (second & 0x80) !== 0
  const begin = lengthEnd + (isMasked ? 4 : 0)
  const end = begin + length
  if (buffer.length < end) return undefined
  const body = Buffer.from(buffer.subarray(begin, end))
  const payload = isMasked ? unmask(body, buffer.subarray(lengthEnd, begin)) : body
  return { opcode: first & 0x0f, payload, isLast: (first & 0x80) !== 0, end }
}
