import { connect, type Socket } from 'node:net'
import { freePort } from '@ringwire/testkit/ports'
import { program } from '@ringwire/testkit/program'
import { RawWebSocket } from '@ringwire/testkit/raw-websocket'
import { Service } from '@ringwire/testkit/service'

/** A service whose processes may open this many files each, with its listener for operators. */
export class SmallService extends Service {
  protected override readonly command: readonly string[]
  readonly admin: string

  private constructor(files: number, adminPort: number, env: Record<string, string>) {
    super({ RINGWIRE_ADMIN_PORT: String(adminPort), ...env })
    this.command = ['sh', '-c', `ulimit -n ${files}; exec "$@"`, 'sh', ...program]
    this.admin = `http://127.0.0.1:${adminPort}`
  }

  static async start(files: number, env: Record<string, string> = {}): Promise<SmallService> {
    const service = new SmallService(files, await freePort(), env)
    try {
      await service.start()
    } catch (error) {
      await service.dispose()
      throw error
    }
    return service
  }

  /** The value of a series; of a counter that is not there undefined. */
  async metric(name: string): Promise<number | undefined> {
    const text = await (await fetch(`${this.admin}/metrics`, { keepalive: false })).text()
    const line = text.split('\n').find((each) => each.startsWith(`${name} `))
    return line === undefined ? undefined : Number(line.slice(name.length + 1))
  }

  linesWith(message: string): number {
    return this.log.split('\n').filter((line) => line.includes(message)).length
  }
}

/** What became of one client: its session began, or what it heard instead. */
export type Outcome = 'auth.ok' | 'HTTP 503 SERVICE_UNAVAILABLE' | '1013 SERVICE_UNAVAILABLE' | string

export interface Newcomer {
  readonly outcome: Promise<Outcome>
  leave(): void
}

/** A client that connects, and gets an answer. `isBrowser`: it sends an Origin. */
export function arrive(service: Service, token: string, isBrowser: boolean): Newcomer {
  const { promise, resolve } = Promise.withResolvers<Outcome>()
  let code = ''
  const socket = new RawWebSocket({
    url: service.url,
    target: '/v1/ws',
    headers: isBrowser
      ? ['Origin: https://shop.example', `Sec-WebSocket-Protocol: jwt, ${token}`]
      : [`Authorization: Bearer ${token}`],
    onText(text) {
      const message = JSON.parse(text)
      code = message.error?.code ?? ''
      if (message.event === 'auth.ok') resolve('auth.ok')
    },
    onClosed: ({ code: closeCode }) => resolve(refusal() ?? `${closeCode} ${code}`),
  })
  let refusal = (): string | undefined => undefined
  // A refused upgrade closes its connection, and is whole then.
  void socket.answer.then(({ status, body }) => {
    if (status !== 101) refusal = () => `HTTP ${status} ${/"code":"(\w+)"/.exec(body())?.[1]}`
  })
  return { outcome: promise, leave: () => socket.reset() }
}

export interface Silent {
  readonly closed: Promise<void>
  leave(): void
}

/** A connection that never says anything. */
export function beSilent(service: Service): Silent {
  const { hostname, port } = new URL(service.url)
  const socket: Socket = connect(Number(port), hostname)
  const { promise, resolve } = Promise.withResolvers<void>()
  socket.on('error', () => {})
  socket.on('close', () => resolve())
  return { closed: promise, leave: () => socket.destroy() }
}

/** Tokens for as many sockets: a participant may have 20. */
export async function tokensFor(service: Service, sockets: number): Promise<string[]> {
  const people = Array.from({ length: Math.ceil(sockets / 10) }, (_, n) => ({ user_id: `ann-${n}` }))
  const tokens: string[] = []
  for (const person of people) tokens.push(await service.token(person))
  return Array.from({ length: sockets }, (_, n) => tokens[Math.floor(n / 10)] ?? '')
}
