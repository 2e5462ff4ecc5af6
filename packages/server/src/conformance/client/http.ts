/** The little of HTTP that a client under test needs: it asks for a token, and opens its socket. */
import type { Socket } from 'node:net'
import { createHeadReader, headersOf } from '../wire.ts'

export interface UpgradeRequest {
  /** Path and query. */
  readonly target: string
  /** Its header lines Authorization and Sec-WebSocket-Protocol, as they came. */
  readonly credentials: readonly string[]
  /** The session token of them. */
  readonly token: string | undefined
  readonly key: string
  readonly version: string
}

export interface PlainRequest {
  readonly method: string
  readonly target: string
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
}

export interface PlainAnswer {
  readonly status: number
  readonly contentType: string
  readonly text: string
}

/** Reads one request from a connection, and hands it on by what it asks for. */
export function serveConnection(
  socket: Socket,
  onPlain: (request: PlainRequest) => Promise<PlainAnswer>,
  onUpgrade: (request: UpgradeRequest) => void,
): void {
  let plain: { method: string; target: string; headers: ReadonlyMap<string, string> } | undefined
  let body = Buffer.alloc(0)
  const take = createHeadReader((head) => {
    const [line = '', ...lines] = head.split('\r\n')
    const [method = '', target = '/'] = line.split(' ')
    const headers = headersOf(lines)
    if (headers.get('upgrade')?.toLowerCase() === 'websocket') {
      socket.off('data', onData)
      onUpgrade(upgradeOf(target, headers))
      return false
    }
    plain = { method, target, headers }
    return true
  })
  const onData = (bytes: Buffer) => {
    body = Buffer.concat([body, take(bytes)])
    if (plain === undefined || body.length < Number(plain.headers.get('content-length') ?? 0)) return
    socket.off('data', onData)
    void onPlain({ ...plain, body }).then(({ status, contentType, text }) => {
      const length = Buffer.byteLength(text)
      const head = `HTTP/1.1 ${status} Answer\r\nContent-Type: ${contentType}\r\nContent-Length: ${length}`
      const cors = 'Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Headers: *'
      socket.end(`${head}\r\nCache-Control: no-store\r\n${cors}\r\nConnection: close\r\n\r\n${text}`)
    })
  }
  socket.on('data', onData)
}

function upgradeOf(target: string, headers: ReadonlyMap<string, string>): UpgradeRequest {
  const credentials = ['Authorization', 'Sec-WebSocket-Protocol', 'Origin'].flatMap((name) => {
    const value = headers.get(name.toLowerCase())
    return value === undefined ? [] : [`${name}: ${value}`]
  })
  const bearer = /^Bearer (\S+)$/i.exec(headers.get('authorization') ?? '')?.[1]
  const offered = (headers.get('sec-websocket-protocol') ?? '').split(',').map((name) => name.trim())
  const listed = offered.includes('jwt') ? offered.find((name) => name !== 'jwt' && name !== '') : undefined
  return {
    target,
    credentials,
    token: bearer ?? listed,
    key: headers.get('sec-websocket-key') ?? '',
    version: headers.get('sec-websocket-version') ?? '',
  }
}
