import { Client, type ClientOptions } from '@ringwire/testkit/client'
import { FrameLog } from '@ringwire/testkit/frame-log'
import type { Service, TokenWish } from '@ringwire/testkit/service'
import { type Link, TcpProxy } from '@ringwire/testkit/tcp-proxy'

/** Networks between clients and the service: each connection has its own, which it can lose. */
export class Networks {
  private readonly proxies: TcpProxy[] = []

  async connect(
    service: Service,
    wish: TokenWish,
    options: Partial<ClientOptions> = {},
  ): Promise<{ client: Client; link: Link; said: FrameLog }> {
    const proxy = await new TcpProxy(service.nextUrl()).start()
    this.proxies.push(proxy)
    const said = new FrameLog(proxy)
    const client = new Client({
      ...{ url: proxy.url, passedOn: service.passedOn, token: await service.token(wish) },
      ...options,
    })
    await client.next('auth.ok')
    return { client, link: proxy.last, said }
  }

  stop(): void {
    for (const proxy of this.proxies) proxy.stop()
  }
}

/** The client has proven to have received everything so far [PLACE5]: it was pinged after that, and its pong was read. */
export async function proven(client: Client): Promise<void> {
  await client.settle()
  await client.nextPing()
  await client.settle()
}

/** The numbers of the candidates that came, in the order in which they came. */
export function candidateNumbers(client: { readonly all: Client['all'] }): number[] {
  return client.all
    .filter(({ event }) => event === 'webrtc.ice_candidate')
    .map(({ data }) => Number(data.candidate.candidate.slice('candidate:'.length)))
}

export function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i)
}
