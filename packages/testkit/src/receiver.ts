import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { overdue } from './patience.ts'

/** A webhook as it arrived. */
export interface Received {
  readonly id: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly type: string
  readonly data: { readonly call_uuid: string; readonly version: number; readonly status: string }
}

/** What a receiver does with one: a status, no answer at all, or the end of the connection. */
export type Reply = number | 'hang' | 'close'

export interface Receiver {
  readonly url: string
  readonly received: readonly Received[]
  /** How many requests were here at once, at the most. */
  mostAtOnce(): number
  /** How many are here now. */
  unanswered(): number
  /** From now on. */
  reply(how: (received: Received, earlier: number) => Reply): void
  /** Resolves when `count` webhooks have arrived, with all of them. */
  until(count: number): Promise<readonly Received[]>
  close(): Promise<void>
}

const patienceMs = 20_000

/** A real endpoint on loopback. */
export async function openReceiver(): Promise<Receiver> {
  const received: Received[] = []
  /** How often each id came. */
  const times = new Map<string, number>()
  let answer: (received: Received, earlier: number) => Reply = () => 200
  let here = 0
  let most = 0
  let waiting: { readonly count: number; readonly resolve: () => void }[] = []

  const server = createServer(async (request, response) => {
    most = Math.max(most, ++here)
    response.on('close', () => {
      here--
    })
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString('utf8')
    const { type, data } = JSON.parse(text)
    const one: Received = { id: String(request.headers['webhook-id']), headers: request.headers, text, type, data }
    const earlier = times.get(one.id) ?? 0
    times.set(one.id, earlier + 1)
    received.push(one)
    act(response, answer(one, earlier))
    waiting = waiting.filter(({ count, resolve }) => {
      if (received.length < count) return true
      resolve()
      return false
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

  function act(response: ServerResponse, how: Reply): void {
    if (how === 'close') response.destroy()
    else if (how !== 'hang') response.writeHead(how).end(`answer ${how}`)
  }

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    mostAtOnce: () => most,
    unanswered: () => here,
    reply(how) {
      answer = how
    },
    async until(count) {
      if (received.length >= count) return received
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      waiting.push({ count, resolve })
      const said = () => received.map(({ type, data }) => `${type} ${data.version}`).join(', ')
      const cancel = overdue(patienceMs, () => reject(new Error(`${received.length} of ${count} came: ${said()}`)))
      await promise.finally(cancel)
      return received
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
