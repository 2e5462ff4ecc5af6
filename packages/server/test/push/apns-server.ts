import { generateKeyPairSync } from 'node:crypto'
import { Inbox } from './received.ts'

export interface ApnsRequest {
  /** The connection it came on: 1, 2, 3 … */
  readonly over: number
  readonly headers: Readonly<Record<string, string>>
  // biome-ignore lint/suspicious/noExplicitAny: tests compare what came.
  readonly body: any
}

export type ApnsPlan =
  | 'silence'
  | 'informational'
  | 'endless'
  | 'goaway'
  | 'cut'
  | { status: number; reason?: string; headers?: Record<string, string> }

export interface ApnsServer {
  readonly url: string
  /** The .p8 file. */
  readonly key: string
  readonly requests: Inbox<ApnsRequest>
  /** Requests that were ended before their answer: the error code of each. */
  readonly resets: Inbox<number>
  /** What the next requests are answered, one each. */
  plan(...answers: ApnsPlan[]): Promise<void>
  stop(): Promise<void>
}

/** The files of a certificate for 127.0.0.1. */
export interface ServerFiles {
  readonly cert: string
  readonly key: string
}

/** APNs in a process of Node: another HTTP/2 than that of the service. With TLS where it has a certificate. */
export async function startApnsServer(tls?: ServerFiles): Promise<ApnsServer> {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const child = Bun.spawn(['node', new URL('./apns-server.mjs', import.meta.url).pathname], {
    env: {
      PATH: process.env.PATH ?? '',
      APNS_PUBLIC_KEY: publicKey.export({ format: 'pem', type: 'spki' }).toString(),
      ...(tls && { APNS_TLS_CERT: tls.cert, APNS_TLS_KEY: tls.key }),
    },
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const requests: ApnsServer['requests'] = new Inbox()
  const resets: ApnsServer['resets'] = new Inbox()
  const planned = new Inbox<true>()
  const { promise: listening, resolve } = Promise.withResolvers<number>()
  void readLines(child.stdout, (line) => {
    const said = JSON.parse(line)
    if (said.port !== undefined) resolve(said.port)
    else if (said.headers !== undefined) requests.add(said)
    else if (said.reset !== undefined) resets.add(said.reset)
    else if (said.planned) planned.add(true)
  })
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${await listening}`,
    key: privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
    requests,
    resets,
    async plan(...answers) {
      child.stdin.write(`${JSON.stringify(answers)}\n`)
      child.stdin.flush()
      await planned.next()
    },
    async stop() {
      child.kill()
      await child.exited
    },
  }
}

async function readLines(stream: ReadableStream<Uint8Array>, onLine: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) onLine(line)
  }
}
