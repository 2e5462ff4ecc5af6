/** WebSocket frames by hand (RFC 6455 section 5.2): a test has to see every frame, and to send wrong ones. */
export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

export interface Frame {
  readonly fin: boolean
  readonly opcode: number
  readonly masked: boolean
  readonly payload: Buffer
}

export interface FrameOptions {
  readonly fin?: boolean
  readonly masked?: boolean
  /** Reserved bits, 0 to 7. */
  readonly rsv?: number
}

export function encodeFrame(opcode: number, payload: Uint8Array | string, options: FrameOptions = {}): Buffer {
  const { fin = true, masked = true, rsv = 0 } = options
  const body = Buffer.from(payload as Uint8Array)
  const first = (fin ? 0x80 : 0) | (rsv << 4) | opcode
  const mask = masked ? 0x80 : 0
  let head: Buffer
  if (body.length < 126) head = Buffer.from([first, mask | body.length])
  else if (body.length < 65_536) {
    head = Buffer.from([first, mask | 126, 0, 0])
    head.writeUInt16BE(body.length, 2)
  } else {
    head = Buffer.from([first, mask | 127, 0, 0, 0, 0, 0, 0, 0, 0])
    head.writeBigUInt64BE(BigInt(body.length), 2)
  }
  if (!masked) return Buffer.concat([head, body])
  const key = crypto.getRandomValues(new Uint8Array(4))
  const hidden = Buffer.from(body)
  for (let i = 0; i < hidden.length; i++) hidden[i]! ^= key[i % 4]!
  return Buffer.concat([head, key, hidden])
}

/** Takes bytes in any pieces and gives whole frames. */
export class FrameReader {
  private buffer = Buffer.alloc(0)

  push(bytes: Uint8Array): Frame[] {
    this.buffer = Buffer.concat([this.buffer, bytes])
    const frames: Frame[] = []
    for (let frame = this.take(); frame !== undefined; frame = this.take()) frames.push(frame)
    return frames
  }

  private take(): Frame | undefined {
    const { buffer } = this
    if (buffer.length < 2) return undefined
    let length = buffer[1]! & 0x7f
    let at = 2
    if (length === 126) {
      if (buffer.length < 4) return undefined
      length = buffer.readUInt16BE(2)
      at = 4
    } else if (length === 127) {
      if (buffer.length < 10) return undefined
      length = Number(buffer.readBigUInt64BE(2))
      at = 10
    }
    const masked = (buffer[1]! & 0x80) !== 0
    if (masked) at += 4
    if (buffer.length < at + length) return undefined
    const payload = Buffer.from(buffer.subarray(at, at + length))
    if (masked) for (let i = 0; i < length; i++) payload[i]! ^= buffer[at - 4 + (i % 4)]!
    const frame = { fin: (buffer[0]! & 0x80) !== 0, opcode: buffer[0]! & 0x0f, masked, payload }
    this.buffer = buffer.subarray(at + length)
    return frame
  }
}
