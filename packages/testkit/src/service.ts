import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TokenRequest, TokenResponse } from '@ringwire/protocol/rest'
import { Client, type ClientOptions } from './client.ts'
import { freePort } from './ports.ts'
import { type RunningProcess, startProcess } from './process.ts'
import { program } from './program.ts'

export const productKey = { id: 'test', secret: 'a-secret-that-only-tests-know-0123456789' }

/** The participant of a token; everything else has a default. */
export type TokenWish = Partial<TokenRequest> & { user_id: string }

/** The limits that a service of these tests goes without, as they are shipped. */
export const limitsAsShipped = {
  RINGWIRE_TOKEN_RATE_IP: '',
  RINGWIRE_TOKEN_RATE_KEY: '',
  RINGWIRE_INVITE_RATE: '',
  RINGWIRE_PAIR_INVITE_RATE: '',
}

/** The service as its own process, with real sockets and a data directory of its own. */
export class Service {
  readonly dataDir: string
  /** Its settings that are not the default of these tests. */
  readonly env: Readonly<Record<string, string>>
  /** What runs it. */
  protected readonly command: readonly string[] = program
  /** Its own address, once it has been started. */
  protected address = ''
  /** Its own log, if it is not a process. */
  protected logged = ''
  private readonly runs: RunningProcess[] = []

  /** The address for requests. */
  get url(): string {
    return this.address
  }

  /** The address for the next client. Of several nodes each has its turn, whatever requests go between. */
  nextUrl(): string {
    return this.address
  }

  /** What it logged. */
  get log(): string {
    return this.logged + this.runs.map(({ err }) => err).join('')
  }

  /** What it wrote to stdout. */
  get out(): string {
    return this.runs.map(({ out }) => out).join('')
  }

  constructor(env: Record<string, string> = {}) {
    this.dataDir = mkdtempSync(join(tmpdir(), 'ringwire-test-'))
    this.env = env
  }

  /** Starts it, or starts it again on the same data and, where it had one, the same port. */
  async start(env: Record<string, string> = {}): Promise<this> {
    // One that the system gives out for "any" could be somebody else's while it is down.
    const port = this.address === '' ? await freePort() : new URL(this.address).port
    const run = startProcess([...this.command, 'serve'], {
      RINGWIRE_PORT: String(port),
      RINGWIRE_DATA_DIR: this.dataDir,
      RINGWIRE_BOOTSTRAP_KEYS: `${productKey.id}:${productKey.secret}:shop`,
      RINGWIRE_TOKEN_RATE_IP: 'off',
      RINGWIRE_TOKEN_RATE_KEY: 'off',
      RINGWIRE_INVITE_RATE: 'off',
      RINGWIRE_PAIR_INVITE_RATE: 'off',
      RINGWIRE_REST_RATE_IP: 'off',
      RINGWIRE_REST_RATE: 'off',
      RINGWIRE_CONNECT_RATE: 'off',
      ...this.env,
      ...env,
    })
    this.runs.push(run)
    const [, url = ''] = await run.waitFor(/Ringwire listens on (\S+)\n/)
    this.address = url
    return this
  }

  private get running(): RunningProcess | undefined {
    return this.runs.at(-1)
  }

  get pid(): number {
    return this.running?.pid ?? 0
  }

  /** Of each of its processes. */
  get pids(): readonly number[] {
    return [this.pid]
  }

  /** kill -9. */
  async kill(): Promise<void> {
    this.signal('SIGKILL')
    await this.ended
  }

  /** SIGTERM; answers the exit code. */
  async terminate(): Promise<number> {
    this.signal('SIGTERM')
    return this.ended
  }

  /** Resolves when it is gone, with its exit code. */
  get ended(): Promise<number> {
    return this.running?.exited ?? Promise.resolve(0)
  }

  signal(signal: NodeJS.Signals): void {
    this.running?.signal(signal)
  }

  /** Ends it and removes its data. */
  async dispose(): Promise<void> {
    await this.kill()
    rmSync(this.dataDir, { recursive: true, force: true })
  }

  async issue(wish: TokenWish): Promise<TokenResponse> {
    const response = await fetch(`${this.url}/v1/call/session-token`, {
      method: 'POST',
      // The service closes a connection that was idle for 10 s, perhaps just when it is used again.
      keepalive: false,
      headers: {
        'Content-Type': 'application/json',
        'X-SVC-Product-Key-ID': productKey.id,
        'X-SVC-Product-Secret': productKey.secret,
      },
      body: JSON.stringify(tokenRequest(wish)),
    })
    if (response.status !== 200) throw new Error(`token request: ${response.status} ${await response.text()}`)
    return (await response.json()) as TokenResponse
  }

  async token(wish: TokenWish): Promise<string> {
    return (await this.issue(wish)).token
  }

  /** Of several nodes: resolves when what they have told each other so far has arrived. */
  readonly passedOn: ClientOptions['passedOn']

  /** A connected client that has had its `auth.ok`. */
  async connect(wish: TokenWish, options: Partial<ClientOptions> = {}): Promise<Client> {
    const { passedOn } = this
    const url = this.nextUrl()
    const client = new Client({ url, passedOn, token: await this.token(wish), ...options })
    await client.next('auth.ok')
    return client
  }

  /** A client with this token that has yet to hear its `auth.ok`. */
  open(token: string, options: Partial<ClientOptions> = {}): Client {
    return new Client({ url: this.nextUrl(), passedOn: this.passedOn, token, ...options })
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests compare what came.
  async history(token: string, query = ''): Promise<any> {
    const response = await fetch(`${this.url}/v1/calls/history${query}`, {
      headers: { Authorization: `Bearer ${token}` },
      keepalive: false,
    })
    return response.json()
  }
}

function tokenRequest(wish: TokenWish): TokenRequest {
  const role = wish.role ?? 'customer'
  return {
    context_type: 'order',
    context_id: 'order-1',
    role,
    display_name: wish.user_id,
    allowed_peer_role: role === 'customer' ? 'agent' : 'customer',
    ...wish,
  }
}
