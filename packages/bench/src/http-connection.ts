// One keep-alive HTTP/1.1 connection with precomputed requests, one in flight: `fetch` would be the slower end.
import type { Socket } from 'bun'
import { connectOptions, type Way } from './connection.ts'

const END_OF_HEADERS = Buffer.from('\r\n\r\n')

export interface HttpAnswer {
  status: number
  body: string
}

export class HttpConnection {
  #socket: Socket<HttpConnection> | null = null
  #received: Buffer = Buffer.alloc(0)
  #unsent: Uint8Array = new Uint8Array(0)
  #waiting: { resolve: (answer: HttpAnswer) => void; reject: (error: Error) => void } | null = null

  static async open(port: number, way: Way = {}): Promise<HttpConnection> {
    const connection = new HttpConnection()
    connection.#socket = await Bun.connect<HttpConnection>({
      ...connectOptions(way),
      port,
      data: connection,
      socket: {
        data: (socket, chunk) => socket.data.#take(chunk),
        drain: (socket) => socket.data.#write(socket.data.#unsent),
        close: (socket) => socket.data.#lost(new Error('The server closed a keep-alive connection')),
        error: (socket, error) => socket.data.#lost(error),
      },
    })
    return connection
  }

  /** Sends one whole request and resolves with its answer. */
  request(bytes: Uint8Array): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
      this.#write(bytes)
    })
  }

  /** Before its handshake is over, TLS takes nothing; what is left is written when there is room. */
  #write(bytes: Uint8Array): void {
    const written = this.#socket?.write(bytes) ?? -1
    if (written < 0) this.#lost(new Error('Writing to a closed connection'))
    else this.#unsent = bytes.subarray(written)
  }

  close(): void {
    this.#socket?.end()
  }

  #take(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk])
    const answer = parseAnswer(this.#received)
    if (answer === null) return
    this.#received = Buffer.alloc(0)
    const waiting = this.#waiting
    this.#waiting = null
    waiting?.resolve(answer)
  }

  #lost(error: Error): void {
    this.#waiting?.reject(error)
    this.#waiting = null
  }
}

/** Null while the answer is not whole. Only bodies with a Content-Length: both servers send those. */
export function parseAnswer(bytes: Buffer): HttpAnswer | null {
  const end = bytes.indexOf(END_OF_HEADERS)
  if (end < 0) return null
  const head = bytes.toString('latin1', 0, end)
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
  if (length === undefined) throw new Error('An answer without Content-Length')
  const bodyAt = end + END_OF_HEADERS.length
  const bodyEnd = bodyAt + Number(length)
  if (bytes.length < bodyEnd) return null
  return { status: Number(head.slice(9, 12)), body: bytes.toString('utf8', bodyAt, bodyEnd) }
}

export function postJson(port: number, path: string, headers: readonly string[], body: unknown): Uint8Array {
  const json = JSON.stringify(body)
  const lines = [
    `POST ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(json)}`,
    ...headers,
  ]
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${json}`)
}
