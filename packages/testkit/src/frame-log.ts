import { type Frame, FrameReader, opcodes } from './frames.ts'
import type { TcpProxy } from './tcp-proxy.ts'

/** The WebSocket frames that the service sent through a proxy, whether the client got them or not. */
export class FrameLog {
  readonly frames: Frame[] = []
  private readonly reader = new FrameReader()
  private head: Buffer | undefined = Buffer.alloc(0)
  private watchers: (() => void)[] = []

  /** Of the next connection through it; one is all there may be. */
  constructor(proxy: TcpProxy) {
    proxy.onLink = (link) => link.observe('server', (bytes) => this.take(bytes))
  }

  private take(bytes: Buffer): void {
    let after = bytes
    if (this.head !== undefined) {
      this.head = Buffer.concat([this.head, bytes])
      const end = this.head.indexOf('\r\n\r\n')
      if (end < 0) return
      after = this.head.subarray(end + 4)
      this.head = undefined
    }
    this.frames.push(...this.reader.push(after))
    for (const watcher of this.watchers.splice(0)) watcher()
  }

  get pings(): number {
    return this.frames.filter(({ opcode }) => opcode === opcodes.ping).length
  }

  /** Of the close frame. */
  get closeCode(): number | undefined {
    return this.frames.find(({ opcode }) => opcode === opcodes.close)?.payload.readUInt16BE(0)
  }

  /** Waits until what came satisfies the condition. */
  async until(condition: (log: FrameLog) => boolean): Promise<void> {
    while (!condition(this)) await new Promise<void>((resolve) => this.watchers.push(resolve))
  }
}
