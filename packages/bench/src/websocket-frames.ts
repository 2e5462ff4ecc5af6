// RFC 6455 framing, as little of it as a load generator needs: whole masked frames out, unmasked frames in.

export const Opcode = { text: 0x1, binary: 0x2, close: 0x8, ping: 0x9, pong: 0xa } as const

const FIN = 0x80
const MASKED = 0x80
const LENGTH_16 = 126
const LENGTH_64 = 127
const LONGEST_HEADER = 10
/** Comparing every payload would cost the generator more than it costs a server to send it. */
const COMPARE_EVERY = 64

/** A frame as a client sends it (RFC 6455 section 5.2). The key must not be zero: some servers skip unmasking then. */
export function encodeMaskedFrame(payload: Uint8Array, maskKey: Uint8Array, opcode: number = Opcode.text): Uint8Array {
  const length = payload.length
  const extended = length < LENGTH_16 ? 0 : length < 0x10000 ? 2 : 8
  const frame = new Uint8Array(2 + extended + 4 + length)
  const view = new DataView(frame.buffer)
  frame[0] = FIN | opcode
  frame[1] = MASKED | (extended === 0 ? length : extended === 2 ? LENGTH_16 : LENGTH_64)
  if (extended === 2) view.setUint16(2, length)
  if (extended === 8) view.setBigUint64(2, BigInt(length))
  const keyAt = 2 + extended
  frame.set(maskKey.subarray(0, 4), keyAt)
  for (let i = 0; i < length; i++) frame[keyAt + 4 + i] = payload[i]! ^ maskKey[i & 3]!
  return frame
}

export function newMaskKey(): Uint8Array {
  const key = crypto.getRandomValues(new Uint8Array(4))
  key[0]! |= 1
  return key
}

/** Bytes on the wire of one frame around `payloadLength` bytes. */
export function frameSize(payloadLength: number, masked: boolean): number {
  const extended = payloadLength < LENGTH_16 ? 0 : payloadLength < 0x10000 ? 2 : 8
  return 2 + extended + (masked ? 4 : 0) + payloadLength
}

/** Takes a frame that may hold several messages apart. */
export type Split = (payload: Uint8Array) => Uint8Array[]

export interface FrameSink {
  /** A text or binary frame that is not one of the expected ones. */
  onMessage(payload: Uint8Array): void
  onControl(opcode: number, payload: Uint8Array): void
}

/** The most digits that the number at the end of a numbered frame may have. */
const MOST_DIGITS = 9
const ZERO = 0x30
const CLOSING_BRACE = 0x7d

/**
 * Reads what a server sends. Frames of the expected length are only counted, from their headers; every 64th of them is
 * compared byte for byte. All others are collected and handed to the sink.
 *
 * Or, `expectNumbered`: frames that are one text, a number and a closing brace. Every number is read, and has to be the
 * one after the last.
 *
 * With `split` a frame may hold several messages. A frame as long as some expected messages is counted as these.
 */
export class FrameScanner {
  #sink: FrameSink
  #split: Split | undefined
  #expected: Uint8Array | null = null
  #header = new Uint8Array(LONGEST_HEADER)
  #headerBytes = 0
  #opcode = 0
  #length = 0
  #remaining = 0
  #inPayload = false
  #isCounted = false
  #collected: Uint8Array | null = null
  #counted = 0
  #different = 0
  #isNumbered = false
  #lastNumber = 0
  #outOfOrder = 0

  constructor(sink: FrameSink, split?: Split) {
    this.#sink = sink
    this.#split = split
  }

  /** From now on messages as long as this payload are counted; null collects every frame. */
  expect(payload: Uint8Array | null): void {
    this.#expected = payload
    this.#isNumbered = false
  }

  /** From now on frames that are this text, the numbers after `last` and a closing brace are counted. */
  expectNumbered(text: Uint8Array, last: number): void {
    this.#expected = text
    this.#isNumbered = true
    this.#lastNumber = last
  }

  /** Numbered frames whose number was not the one after the last. */
  get outOfOrder(): number {
    return this.#outOfOrder
  }

  /** Counted frames whose content was compared and was not the expected one. */
  get different(): number {
    return this.#different
  }

  /** Takes a chunk of the stream and gives the number of expected messages that ended in it. */
  push(chunk: Uint8Array): number {
    let at = 0
    let completed = 0
    while (at < chunk.length) {
      if (!this.#inPayload) {
        at = this.#readHeader(chunk, at)
        if (!this.#inPayload) continue
      }
      const take = Math.min(this.#remaining, chunk.length - at)
      if (this.#isCounted && this.#isNumbered && take < this.#length) this.#collected ??= new Uint8Array(this.#length)
      if (this.#collected !== null) {
        this.#collected.set(chunk.subarray(at, at + take), this.#length - this.#remaining)
      } else if (this.#isNumbered) this.#count(chunk, at, at + take)
      else if (take === this.#length && ++this.#counted % COMPARE_EVERY === 1) {
        this.#compare(chunk.subarray(at, at + this.#expected!.length))
      }
      at += take
      this.#remaining -= take
      if (this.#remaining > 0) return completed
      this.#inPayload = false
      if (!this.#isCounted) completed += this.#handOn(this.#collected!)
      else {
        if (this.#collected !== null) this.#count(this.#collected, 0, this.#length)
        completed += this.#split === undefined ? 1 : this.#length / this.#expected!.length
      }
    }
    return completed
  }

  /** Reads a header at `at`, perhaps the rest of a split one; leaves `#inPayload` false when bytes are missing. */
  #readHeader(chunk: Uint8Array, start: number): number {
    let at = start
    let header = chunk
    let from = at
    if (this.#headerBytes > 0 || chunk.length - at < LONGEST_HEADER) {
      header = this.#header
      from = 0
      while (this.#headerBytes < this.#headerSize() && at < chunk.length) {
        this.#header[this.#headerBytes++] = chunk[at++]!
      }
      if (this.#headerBytes < this.#headerSize()) return at
      this.#headerBytes = 0
    }
    const size = headerSize(header[from + 1]!)
    this.#begin(header, from, size)
    return header === chunk ? at + size : at
  }

  #headerSize(): number {
    return this.#headerBytes < 2 ? 2 : headerSize(this.#header[1]!)
  }

  #begin(header: Uint8Array, at: number, size: number): void {
    const first = header[at]!
    const second = header[at + 1]!
    if ((first & FIN) === 0 || (second & MASKED) !== 0) throw new Error('A fragmented or masked frame from the server')
    this.#opcode = first & 0x0f
    let length = second & 0x7f
    if (size > 2) {
      length = 0
      for (let i = 2; i < size; i++) length = length * 256 + header[at + i]!
    }
    this.#length = length
    this.#remaining = length
    this.#inPayload = true
    this.#isCounted = this.#opcode < Opcode.close && this.#isExpected(length)
    this.#collected = this.#isCounted ? null : new Uint8Array(length)
    if (length === 0) {
      this.#inPayload = false
      this.#handOn(new Uint8Array(0))
    }
  }

  #isExpected(length: number): boolean {
    if (this.#expected === null) return false
    if (this.#split !== undefined) return length > 0 && length % this.#expected.length === 0
    const digits = length - this.#expected.length - 1
    return this.#isNumbered ? digits >= 1 && digits <= MOST_DIGITS : length === this.#expected.length
  }

  /** One numbered frame, the whole of it. */
  #count(bytes: Uint8Array, from: number, to: number): void {
    const text = this.#expected!
    let number = 0
    for (let i = from + text.length; i < to - 1; i++) number = number * 10 + bytes[i]! - ZERO
    if (number !== this.#lastNumber + 1 || bytes[to - 1] !== CLOSING_BRACE) this.#outOfOrder++
    this.#lastNumber = number
    if (++this.#counted % COMPARE_EVERY === 1) this.#compare(bytes.subarray(from, from + text.length))
  }

  #compare(payload: Uint8Array): void {
    if (!this.#isSame(payload)) this.#different++
  }

  /** Gives the number of expected messages that were in a frame with other ones. */
  #handOn(payload: Uint8Array): number {
    if (this.#opcode >= Opcode.close) this.#sink.onControl(this.#opcode, payload)
    else if (this.#split === undefined) this.#sink.onMessage(payload)
    else {
      const messages = this.#split(payload)
      const others = messages.filter((message) => !this.#isSame(message))
      for (const message of others) this.#sink.onMessage(message)
      return messages.length - others.length
    }
    return 0
  }

  #isSame(message: Uint8Array): boolean {
    return this.#expected !== null && Buffer.compare(message, this.#expected) === 0
  }
}

function headerSize(second: number): number {
  const length = second & 0x7f
  return length === LENGTH_16 ? 4 : length === LENGTH_64 ? 10 : 2
}
