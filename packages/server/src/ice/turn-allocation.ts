/**
 * Asks a TURN server for what a client asks it for, an allocation, and gives it back (RFC 8656).
 *
 *   await tryTurn('turn:turn.example.com:3478?transport=udp', { username, credential }, 5000)
 *     → undefined, or why there is none: '401 Unauthorized', 'no answer within 5 s', 'ECONNREFUSED' …
 */
import { createHash, createHmac, randomBytes } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'

interface TurnCredentials {
  readonly username: string
  readonly credential: string
}

const magicCookie = 0x2112a442
const allocate = 0x0003
const refresh = 0x0004
const attributes = {
  ...{ username: 0x0006, integrity: 0x0008, error: 0x0009, lifetime: 0x000d },
  ...{ realm: 0x0014, nonce: 0x0015, transport: 0x0019 },
}
/** UDP is not sure to arrive (RFC 8489 section 6.2.1). In ms. */
const againMs = 500

/** The number of ports that are tried where others had them a moment ago. */
const mostPorts = 4

export async function tryTurn(url: string, credentials: TurnCredentials, ms: number): Promise<string | undefined> {
  for (let port = 1; ; port++) {
    const problem = await tryOnce(url, credentials, ms)
    // The port was another client's a moment ago: another one is to be taken (RFC 8656 section 7.4).
    if (port === mostPorts || !problem?.startsWith('437')) return problem
  }
}

async function tryOnce(url: string, credentials: TurnCredentials, timeoutMs: number): Promise<string | undefined> {
  const gone = Promise.withResolvers<never>()
  gone.promise.catch(() => undefined)
  const timer = setTimeout(() => gone.reject(new Error(`no answer within ${timeoutMs / 1000} s`)), timeoutMs)
  let line: Line | undefined
  try {
    line = openLine(url, gone.reject)
    return await Promise.race([converse(line, credentials), gone.promise])
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    return code ?? message
  } finally {
    clearTimeout(timer)
    line?.close()
  }
}

/** The first request is refused with the realm and a nonce; with them the second one is signed. */
async function converse(line: Line, credentials: TurnCredentials): Promise<string | undefined> {
  const transport: Attribute = [attributes.transport, Buffer.from([17, 0, 0, 0])]
  const first = await ask(line, encode(allocate, [transport]))
  if (!isFailure(first)) return 'asks for no credentials'
  let sign = signerOf(first, credentials)
  if (sign === undefined) return failureOf(first)
  let answer = await ask(line, sign(allocate, [transport]))
  if (isFailure(answer) && failureOf(answer).startsWith('438')) {
    sign = signerOf(answer, credentials) ?? sign
    answer = await ask(line, sign(allocate, [transport]))
  }
  if (isFailure(answer)) return failureOf(answer)
  await ask(line, sign(refresh, [[attributes.lifetime, Buffer.alloc(4)]]))
  return undefined
}

type Attribute = readonly [type: number, value: Uint8Array]
type Sign = (method: number, own: readonly Attribute[]) => Buffer

/** Long-term credentials (RFC 8489 section 9.2); undefined where the answer does not ask for them. */
function signerOf(answer: Buffer, { username, credential }: TurnCredentials): Sign | undefined {
  const realm = attributeOf(answer, attributes.realm)
  const nonce = attributeOf(answer, attributes.nonce)
  if (realm === undefined || nonce === undefined) return undefined
  const key = createHash('md5').update(`${username}:${realm}:${credential}`).digest()
  return (method, own) => {
    const message = encode(method, [
      ...own,
      [attributes.username, Buffer.from(username)],
      [attributes.realm, realm],
      [attributes.nonce, nonce],
    ])
    // The signed part says that the signature follows.
    message.writeUInt16BE(message.length - 20 + 24, 2)
    const integrity = createHmac('sha1', key).update(message).digest()
    return Buffer.concat([message, encodeAttribute([attributes.integrity, integrity])])
  }
}

function encode(method: number, own: readonly Attribute[]): Buffer {
  const body = Buffer.concat(own.map(encodeAttribute))
  const header = Buffer.alloc(8)
  header.writeUInt16BE(method, 0)
  header.writeUInt16BE(body.length, 2)
  header.writeUInt32BE(magicCookie, 4)
  return Buffer.concat([header, randomBytes(12), body])
}

function encodeAttribute([type, value]: Attribute): Buffer {
  const text = Buffer.alloc(4 + Math.ceil(value.length / 4) * 4)
  text.writeUInt16BE(type, 0)
  text.writeUInt16BE(value.length, 2)
  text.set(value, 4)
  return text
}

function attributeOf(message: Buffer, wanted: number): Buffer | undefined {
  for (let at = 20; at + 4 <= message.length; ) {
    const length = message.readUInt16BE(at + 2)
    if (message.readUInt16BE(at) === wanted) return message.subarray(at + 4, at + 4 + length)
    at += 4 + Math.ceil(length / 4) * 4
  }
  return undefined
}

const isFailure = (answer: Buffer) => (answer.readUInt16BE(0) & 0x0110) === 0x0110

function failureOf(answer: Buffer): string {
  const error = attributeOf(answer, attributes.error)
  if (error === undefined || error.length < 4) return 'an answer that is none of TURN'
  const code = (error[2] ?? 0) * 100 + (error[3] ?? 0)
  return `${code} ${error.subarray(4).toString()}`.trim()
}

/** A connection that messages go over and come back on. */
interface Line {
  send(message: Buffer): void
  onMessage: (message: Buffer) => void
  close(): void
}

function ask(line: Line, request: Buffer): Promise<Buffer> {
  const answered = Promise.withResolvers<Buffer>()
  line.onMessage = (message) => {
    if (message.length >= 20 && message.subarray(8, 20).equals(request.subarray(8, 20))) answered.resolve(message)
  }
  line.send(request)
  return answered.promise
}

function openLine(url: string, fail: (error: Error) => void): Line {
  const { isTls, host, port, isTcp } = readTurnUrl(url)
  return isTcp ? overTcp(isTls, host, port, fail) : overUdp(host, port, fail)
}

function overUdp(host: string, port: number, fail: (error: Error) => void): Line {
  let again: ReturnType<typeof setInterval> | undefined
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4', (message) => {
    clearInterval(again)
    line.onMessage(message)
  })
  socket.on('error', fail)
  const line: Line = {
    send(message) {
      const go = () => socket.send(message, port, host, (error) => error && fail(error))
      again = setInterval(go, againMs)
      go()
    },
    onMessage() {},
    close() {
      clearInterval(again)
      socket.close()
    },
  }
  return line
}

function overTcp(isTls: boolean, host: string, port: number, fail: (error: Error) => void): Line {
  const socket = isTls ? connectTls({ host, port, servername: host }) : connect({ host, port })
  let rest = Buffer.alloc(0)
  socket.on('error', fail)
  socket.on('close', () => fail(new Error('the connection was closed')))
  socket.on('data', (bytes: Buffer) => {
    rest = Buffer.concat([rest, bytes])
    while (rest.length >= 20 && rest.length >= 20 + rest.readUInt16BE(2)) {
      const end = 20 + rest.readUInt16BE(2)
      line.onMessage(rest.subarray(0, end))
      rest = rest.subarray(end)
    }
  })
  const line: Line = {
    send: (message) => void socket.write(message),
    onMessage() {},
    close: () => void socket.destroy(),
  }
  return line
}

/** As the settings take it (RFC 7065 section 3.1). */
function readTurnUrl(url: string) {
  const [, scheme, v6, name, port, transport] =
    /^(turns?):(?:\[([^\]]+)\]|([^:?]+))(?::(\d+))?(?:\?transport=(udp|tcp))?$/.exec(url) ?? []
  const host = v6 ?? name
  if (host === undefined) throw new Error('no TURN URL')
  const isTls = scheme === 'turns'
  return { isTls, host, port: Number(port ?? (isTls ? 5349 : 3478)), isTcp: isTls || transport === 'tcp' }
}
