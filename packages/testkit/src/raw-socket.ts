import { connect, type Socket } from 'node:net'
import { type Frame, FrameReader, opcodes } from './frames.ts'
import { overdue } from './patience.ts'

/** How long a test waits for something that should come. A bound for failures, never a pace. */
const patienceMs = 30_000

/** A TCP connection and every byte that came on it: for what no WebSocket client would send or show. */
export class RawSocket {
  /** Resolves when the other side has closed, with a FIN or without. */
  readonly closed: Promise<void>
  /** Local port: it names the connection. */
  private chunks: Buffer[] = []
  private watchers: (() => void)[] = []
  private readonly socket: Socket

  constructor(url: string) {
    const { hostname, port } = new URL(url)
    this.socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
    this.socket.on('error', () => {})
    this.socket.on('data', (bytes) => {
      this.chunks.push(bytes as Buffer)
      this.wake()
    })
    this.closed = new Promise((resolve) => {
      this.socket.on('end', () => resolve())
      this.socket.on('close', () => resolve())
    })
    this.closed.then(() => this.wake())
  }

  get received(): Buffer {
    if (this.chunks.length > 1) this.chunks = [Buffer.concat(this.chunks)]
    return this.chunks[0] ?? Buffer.alloc(0)
  }

  /** The frames that came after the head of the answer. */
  get frames(): Frame[] {
    const end = this.received.indexOf('\r\n\r\n')
    return end < 0 ? [] : new FrameReader().push(this.received.subarray(end + 4))
  }

  /** The texts of the frames. */
  get texts(): string[] {
    return this.frames.filter(({ opcode }) => opcode === opcodes.text).map(({ payload }) => payload.toString())
  }

  get closeCode(): number | undefined {
    const frame = this.frames.find(({ opcode }) => opcode === opcodes.close)
    return frame === undefined || frame.payload.length < 2 ? undefined : frame.payload.readUInt16BE(0)
  }

  write(bytes: Uint8Array | string): void {
    if (!this.socket.destroyed) this.socket.write(bytes as Uint8Array)
  }

  /** Waits until what came satisfies the condition. */
  async until(condition: (socket: this) => boolean, what = 'bytes'): Promise<void> {
    let isLate = false
    const cancel = overdue(patienceMs, () => {
      isLate = true
      this.wake()
    })
    try {
      while (!condition(this)) {
        if (isLate) throw new Error(`waited ${patienceMs} ms for ${what}; came: ${this.received.toString('latin1')}`)
        await new Promise<void>((resolve) => void this.watchers.push(resolve))
      }
    } finally {
      cancel()
    }
  }

  /** Ends our half; the other side may go on. */
  end(): void {
    this.socket.end()
  }

  destroy(): void {
    this.socket.destroy()
  }

  private wake(): void {
    for (const watcher of this.watchers.splice(0)) watcher()
  }
}

/** What an HTTP answer says; the body of one with a Content-Length. */
export interface Answer {
  readonly status: number
  readonly head: string
  readonly body: string
}

/** Sends bytes and reads one HTTP answer; the connection is left as it is. */
export async function exchange(socket: RawSocket, bytes: Uint8Array | string): Promise<Answer> {
  socket.write(bytes)
  let ended = false
  socket.closed.then(() => {
    ended = true
  })
  await socket.until((it) => answerOf(it.received) !== undefined || ended, 'an HTTP answer')
  return answerOf(socket.received) ?? { status: 0, head: '', body: '' }
}

function answerOf(received: Buffer): Answer | undefined {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const head = received.subarray(0, end).toString('latin1')
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
  const body = received.subarray(end + 4)
  if (body.length < length) return undefined
  return { status: Number(head.split(' ')[1]), head, body: body.subarray(0, length).toString() }
}
