import { readFileSync } from 'node:fs'
import type { TokenRequest, TokenResponse } from '@ringwire/protocol/rest'
import { ExtendedClient, type ExtendedClientOptions } from '@ringwire/testkit/extended-client'
import { freePort } from '@ringwire/testkit/ports'
import { productKey, Service } from '@ringwire/testkit/service'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { Postgres } from '../support/postgres.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { signingKeyEnv } from '../support/session-tokens.ts'
import { Phone, type PhoneOptions, SocketClosed, tls } from './phone.ts'
import { type ProxyName, type ReverseProxy, startProxy } from './proxy.ts'

export interface DeploymentOptions {
  readonly proxy: ProxyName
  readonly env?: Record<string, string>
  readonly silenceMs?: number
}

type Role = 'customer' | 'agent'

export const person = (user_id: string, role: Role): TokenRequest => ({
  user_id,
  role,
  context_type: 'order',
  context_id: '17',
  display_name: user_id,
  allowed_peer_role: role === 'customer' ? 'agent' : 'customer',
})

/** Two nodes on PostgreSQL and Redis behind a proxy: real processes all of them. */
export class Deployment {
  readonly url: string
  readonly nodes: readonly [Service, Service]
  readonly redis: RedisServer
  /** Between the nodes and Redis: can stand still. */
  readonly redisProxy: TcpProxy
  private readonly postgres: Postgres
  private readonly phones: Phone[] = []
  private readonly extended: ExtendedClient[] = []
  private proxy: ReverseProxy | undefined
  private readonly added: Service[] = []

  private constructor(
    port: number,
    nodes: readonly [Service, Service],
    postgres: Postgres,
    redis: RedisServer,
    redisProxy: TcpProxy,
  ) {
    this.url = `https://127.0.0.1:${port}`
    this.redisProxy = redisProxy
    this.nodes = nodes
    this.postgres = postgres
    this.redis = redis
  }

  static async start({ proxy, env, silenceMs }: DeploymentOptions): Promise<Deployment> {
    const [port, postgres, redis] = await Promise.all([freePort(), Postgres.start(), startRedis()])
    const redisProxy = await new TcpProxy(redis.url).start()
    const node = (id: string) =>
      new Service({
        DATABASE_URL: postgres.url(),
        REDIS_URL: `redis://${redisProxy.host}`,
        RINGWIRE_NODE_ID: id,
        RINGWIRE_PUBLIC_URL: `https://127.0.0.1:${port}`,
        RINGWIRE_TRUST_PROXY: '1',
        ...signingKeyEnv,
        ...env,
      })
    const deployment = new Deployment(port, [node('one'), node('two')], postgres, redis, redisProxy)
    const [one, two] = deployment.nodes
    try {
      await Promise.all([one.start(), two.start()])
      const urls = [one.url, two.url] as const
      deployment.proxy = await startProxy(proxy, { port, nodes: urls, silenceMs: silenceMs ?? 75_000 })
    } catch (error) {
      await deployment.dispose()
      throw error
    }
    return deployment
  }

  get log(): string {
    return this.proxy?.log() ?? ''
  }

  /** How many files each process that the proxy has started may open. */
  fileLimits(): number[] {
    const pid = this.proxy?.pid
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
    const limits = children.map((child) => readFileSync(`/proc/${child}/limits`, 'utf8'))
    return limits.map((text) => Number(/^Max open files +(\d+)/m.exec(text)?.[1]))
  }

  /** Starts another node, and tells the proxy of it. */
  async addNode(id: string): Promise<Service> {
    const node = await new Service({ ...this.nodes[0].env, RINGWIRE_NODE_ID: id }).start()
    this.added.push(node)
    await this.proxy?.addNode(node.url)
    return node
  }

  askToken(body: TokenRequest, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(`${this.url}/v1/call/session-token`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        'X-SVC-Product-Key-ID': productKey.id,
        'X-SVC-Product-Secret': productKey.secret,
        ...headers,
      },
      body: JSON.stringify(body),
      // The proxy closes a connection that was idle for a while, perhaps just when it is used again.
      keepalive: false,
      tls,
    })
  }

  async issue(body: TokenRequest): Promise<TokenResponse> {
    const answer = await this.askToken(body)
    if (answer.status !== 200) throw new Error(`token request: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as TokenResponse
  }

  /** A base client through the proxy that has had its `auth.ok`. */
  async connect(userId: string, role: Role): Promise<Phone> {
    const { ws_url, token } = await this.issue(person(userId, role))
    const phone = this.open(ws_url, { protocols: ['jwt', token] })
    await phone.next('auth.ok')
    return phone
  }

  /** The same in extended mode. */
  async connectExtended(
    userId: string,
    role: Role,
    options: Partial<ExtendedClientOptions> = {},
  ): Promise<ExtendedClient> {
    const { token } = await this.issue(person(userId, role))
    const client = new ExtendedClient({ userId, url: this.url, token, ...options })
    this.extended.push(client)
    await client.connect()
    return client
  }

  open(url: string, options: PhoneOptions): Phone {
    const phone = new Phone(url, options)
    this.phones.push(phone)
    return phone
  }

  /** Closes every socket that a test opened. */
  async closeAll(): Promise<void> {
    const phones = this.phones.splice(0)
    for (const phone of phones) phone.close()
    const extended = this.extended.splice(0).map((client) => client.leave())
    await Promise.all([...phones.map(({ closed }) => closed), ...extended])
  }

  /** Ids of the nodes that hold the places of a call, as the call's row has them. */
  async nodesOf(callUuid: string): Promise<{ caller: string; callee: string }> {
    const [row] = await this.postgres.query(
      `SELECT caller_place, callee_place FROM calls WHERE call_uuid = '${callUuid}'`,
    )
    const nodeOf = (place: string) => /"node":"(\w+)~/.exec(place)?.[1] ?? place
    return { caller: nodeOf(row.caller_place), callee: nodeOf(row.callee_place) }
  }

  node(id: string): Service {
    return this.nodes[id === 'one' ? 0 : 1]
  }

  /** Resolves when the proxy's answer has this status: HAProxy looks once a second, and so does `/readyz`. */
  async answers(status: number): Promise<void> {
    for (let tries = 0; tries < 1_500; tries++) {
      if ((await fetch(`${this.url}/readyz`, { keepalive: false, tls })).status === status) return
      await Bun.sleep(20)
    }
    throw new Error(`/readyz does not answer ${status}`)
  }

  /** Resolves when the proxy sends new sockets to both nodes: two that are opened together are then on different ones. */
  balanced(): Promise<void> {
    return this.callsAreOn('both nodes', ({ caller, callee }) => caller !== callee)
  }

  /** Resolves when the proxy sends new sockets to a node. */
  reaches(id: string): Promise<void> {
    return this.callsAreOn(`node ${id}`, ({ caller, callee }) => caller === id || callee === id)
  }

  private async callsAreOn(what: string, isSo: (on: { caller: string; callee: string }) => boolean): Promise<void> {
    await this.answers(200)
    for (let tries = 0; tries < 200; tries++) {
      try {
        if (isSo(await this.call('probe-a', 'probe-b'))) return
      } catch (error) {
        // A node that is not ready yet, which the proxy has not noticed, sends a newcomer away, or is not there.
        if (!(error instanceof SocketClosed && [1006, 1013].includes(error.code))) throw error
      }
      await Bun.sleep(50)
    }
    throw new Error(`the proxy does not use ${what}`)
  }

  /** Answers which nodes a call is on. */
  private async call(callerId: string, calleeId: string): Promise<{ caller: string; callee: string }> {
    const caller = await this.connect(callerId, 'customer')
    const callee = await this.connect(calleeId, 'agent')
    caller.send('call.invite', { callee_user_id: calleeId, callee_role: 'agent' })
    const { call_uuid } = await callee.next('call.ringing')
    callee.send('call.accept', { call_uuid })
    await caller.next('call.accepted')
    const on = await this.nodesOf(call_uuid)
    caller.send('call.end', { call_uuid })
    await callee.next('call.ended')
    for (const phone of [caller, callee]) phone.close()
    await Promise.all([caller.closed, callee.closed])
    return on
  }

  async dispose(): Promise<void> {
    await this.proxy?.stop()
    await Promise.all([...this.nodes, ...this.added].map((node) => node.dispose()))
    await this.redisProxy.stop()
    await Promise.all([this.postgres.dispose(), this.redis.stop()])
  }
}
