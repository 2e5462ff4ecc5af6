import { overdue } from '@ringwire/testkit/patience'

/** A certificate of the tests: nobody vouches for it. */
export const tls = { rejectUnauthorized: false }

export interface PhoneOptions {
  readonly protocols?: string[]
  readonly headers?: Record<string, string>
}

/** How long a test waits for something that should come. A bound for failures, never a pace. */
const patienceMs = 30_000

/** The socket closed, and what was waited for did not come. */
export class SocketClosed extends Error {
  readonly code: number
  constructor(event: string, code: number) {
    super(`closed with ${code} before ${event}`)
    this.name = 'SocketClosed'
    this.code = code
  }
}

/** A socket as a browser's: texts in order, and how it closed. */
export class Phone {
  readonly closed: Promise<{ code: number; reason: string }>
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever came and compare it.
  private readonly unread: any[] = []
  private wake: () => void = () => {}
  private closeCode: number | undefined
  private readonly socket: WebSocket

  constructor(url: string, options: PhoneOptions) {
    this.socket = new WebSocket(url, { ...options, tls } as never)
    this.closed = new Promise((resolve) => {
      this.socket.onclose = ({ code, reason }) => {
        this.closeCode = code
        this.wake()
        resolve({ code, reason })
      }
    })
    this.socket.onmessage = ({ data }) => {
      this.unread.push(JSON.parse(String(data)))
      this.wake()
    }
  }

  send(event: string, data: object, requestId?: string): void {
    this.socket.send(JSON.stringify({ event, request_id: requestId, data }))
  }

  /** The data of the next message with this event; others before it are passed over. */
  // biome-ignore lint/suspicious/noExplicitAny: the same.
  async next(event: string): Promise<any> {
    let isLate = false
    const cancel = overdue(patienceMs, () => {
      isLate = true
      this.wake()
    })
    const passed: string[] = []
    try {
      for (;;) {
        const message = this.unread.shift()
        if (message?.event === event) return message.data
        if (message !== undefined) {
          passed.push(message.event, ...(message.error === undefined ? [] : [message.error.code]))
          continue
        }
        if (this.closeCode !== undefined) throw new SocketClosed(event, this.closeCode)
        if (isLate) throw new Error(`waited ${patienceMs} ms for ${event}; came instead: ${passed}`)
        await new Promise<void>((resolve) => {
          this.wake = resolve
        })
      }
    } finally {
      cancel()
    }
  }

  /** Resolves when the service has answered something: the socket is alive. */
  async settle(): Promise<void> {
    this.send('test.settle', {}, crypto.randomUUID())
    const closed = this.closed.then(({ code, reason }) => Promise.reject(new Error(`closed: ${code} ${reason}`)))
    await Promise.race([this.next('call.error'), closed])
  }

  close(): void {
    this.socket.close(1000)
  }
}
