/** A service with a planted fault: what it says passes through a proxy that drops, doubles, reorders or renames. */
import { encodeFrame, FrameReader, opcodes } from '@ringwire/testkit/frames'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'

export interface Fault {
  /** What becomes of an HTTP answer, and of the head of an upgrade. The length has to stay. */
  readonly http?: (text: string) => string
  /** What becomes of each message to a client of one connection; none where it is dropped. */
  readonly message?: (text: string) => readonly string[]
  /** What becomes of a close code. */
  readonly close?: (code: number) => number
}

/** `create` is called once for each connection: a fault may remember what went before. */
export function startFaulty(target: string, create: () => Fault): Promise<TcpProxy> {
  const links = new WeakMap<object, (bytes: Buffer) => Buffer | undefined>()
  const proxy = new TcpProxy(target, (bytes, to, link) => {
    if (to === 'server') return bytes
    let pass = links.get(link)
    if (pass === undefined) {
      pass = passOf(create())
      links.set(link, pass)
    }
    return pass(bytes)
  })
  return proxy.start()
}

function passOf({ http = (text) => text, message = (text) => [text], close = (code) => code }: Fault) {
  let reader: FrameReader | undefined
  let isPlain = false
  const changed = (bytes: Uint8Array): Buffer =>
    Buffer.concat(
      (reader?.push(bytes) ?? []).flatMap(({ opcode, payload }) => {
        if (opcode === opcodes.close && payload.length >= 2) payload.writeUInt16BE(close(payload.readUInt16BE(0)))
        const texts = opcode === opcodes.text ? message(payload.toString()) : [payload]
        return texts.map((text) => encodeFrame(opcode, text, { masked: false }))
      }),
    )
  return (bytes: Buffer): Buffer | undefined => {
    if (isPlain) return Buffer.from(http(bytes.toString('latin1')), 'latin1')
    if (reader !== undefined) return changed(bytes)
    const end = bytes.indexOf('\r\n\r\n')
    const head = bytes.toString('latin1')
    if (!head.startsWith('HTTP/1.1 101')) {
      isPlain = true
      return Buffer.from(http(head), 'latin1')
    }
    reader = new FrameReader()
    return Buffer.concat([Buffer.from(http(head.slice(0, end + 4)), 'latin1'), changed(bytes.subarray(end + 4))])
  }
}
