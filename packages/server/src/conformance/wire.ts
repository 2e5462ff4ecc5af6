/** One WebSocket to a service, which hides nothing: pings are seen, and it can end in every way that sockets end. */
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { type Closed, closePayload, createMessageReader, encodeFrame, opcodes, readClose } from './frames.ts'

export interface HandshakeAnswer {
  /** 0 where the connection ended before. */
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
}

export interface WireOptions {
  /** As `ws_url` is; with its path and query. */
  readonly url: string
  /** Header lines beside those of the handshake itself. */
  readonly headers: readonly string[]
  readonly key?: string
  readonly version?: string
  onMessage(opcode: number, payload: Buffer): void
  onAnswer?(answer: HandshakeAnswer): void
  onClosed(closed: Closed): void
}

export interface Wire {
  readonly answer: Promise<HandshakeAnswer>
  readonly closed: Promise<Closed>
  send(opcode: number, payload: Uint8Array | string): void
  /** Sends a close frame; null: one without a code. */
  close(code: number | null): void
  /** The connection is gone without a word. */
  reset(): void
}

export function openWire(options: WireOptions): Wire {
  const answer = Promise.withResolvers<HandshakeAnswer>()
  const closed = Promise.withResolvers<Closed>()
  const socket = dial(new URL(options.url))
  let last: Closed = { code: 1006, reason: '' }
  socket.on('error', () => {})
  socket.on('close', () => {
    answer.resolve({ status: 0, headers: new Map() })
    closed.resolve(last)
    options.onClosed(last)
  })
  const send = (opcode: number, payload: Uint8Array | string) => {
    if (socket.writable) socket.write(encodeFrame(opcode, payload, true))
  }
  const read = createMessageReader()
  const take = createHeadReader((head) => {
    const said = readHead(head)
    answer.resolve(said)
    options.onAnswer?.(said)
    if (said.status !== 101) socket.end()
    return said.status === 101
  })
  socket.on('data', (bytes: Buffer) => {
    for (const { opcode, payload } of read(take(bytes))) {
      options.onMessage(opcode, payload)
      if (opcode !== opcodes.close) continue
      last = readClose(payload)
      send(opcodes.close, payload.subarray(0, 2))
      socket.end()
    }
  })
  socket.write(headText(options))
  return {
    answer: answer.promise,
    closed: closed.promise,
    send,
    close: (code) => send(opcodes.close, closePayload(code)),
    reset: () => void socket.resetAndDestroy(),
  }
}

function dial({ protocol, hostname, port }: URL): Socket {
  const host = hostname.replace(/^\[|\]$/g, '')
  const isSecure = protocol === 'wss:' || protocol === 'https:'
  const number = Number(port || (isSecure ? 443 : 80))
  const socket = isSecure ? connectTls({ host, port: number, servername: host }) : connect(number, host)
  socket.setNoDelay(true)
  return socket
}

function headText({ url, headers, key = 'dGhlIHNhbXBsZSBub25jZQ==', version = '13' }: WireOptions): string {
  const { pathname, search, host } = new URL(url)
  const lines = [
    `GET ${pathname}${search} HTTP/1.1`,
    `Host: ${host}`,
    'Upgrade: websocket',
    'Connection: Upgrade',
    ...(key === '' ? [] : [`Sec-WebSocket-Key: ${key}`]),
    `Sec-WebSocket-Version: ${version}`,
    ...headers,
  ]
  return `${lines.join('\r\n')}\r\n\r\n`
}

function readHead(text: string): HandshakeAnswer {
  const [line = '', ...lines] = text.split('\r\n')
  return { status: Number(line.split(' ')[1] ?? 0), headers: headersOf(lines) }
}

export function headersOf(lines: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    lines.map((text) => {
      const at = text.indexOf(':')
      return [text.slice(0, at).toLowerCase(), text.slice(at + 1).trim()]
    }),
  )
}

/** Gives the head to `onHead` once it is whole, and the rest to its caller, if that is wanted. */
export function createHeadReader(onHead: (head: string) => boolean): (bytes: Buffer) => Buffer {
  let head: Buffer | undefined = Buffer.alloc(0)
  let isWanted = false
  return (bytes) => {
    if (head === undefined) return isWanted ? bytes : Buffer.alloc(0)
    head = Buffer.concat([head, bytes])
    const end = head.indexOf('\r\n\r\n')
    if (end < 0) return Buffer.alloc(0)
    const rest = head.subarray(end + 4)
    isWanted = onHead(head.subarray(0, end).toString('latin1'))
    head = undefined
    return isWanted ? rest : Buffer.alloc(0)
  }
}
