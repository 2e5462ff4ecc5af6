// The receiver of webhooks, pushes and spans as the measurements see it: a process beside the load.
import { join } from 'node:path'
import { type Placement, startServer } from './process.ts'
import { type ProductKey, productKey } from './tokens.ts'

export interface Heard {
  webhooks: number
  wrong: number
  /** When the last one came, in ms since the epoch. */
  lastAt: number
  /** From the time of the event until it was there, in microseconds. */
  latencies: number[]
}

export interface Receiver {
  url: string
  /**
   * Resolves once this many webhooks came, with those that came after the last call of this. Fails where one came twice
   * or out of order.
   */
  until(count: number): Promise<Heard>
  /** The number of spans that came. */
  spans(): Promise<number>
  stop(): Promise<void>
}

const WITHIN_MS = 60_000

/** On a core of its own, where there is one beside those of the service and the load. */
export async function startReceiver({ generatorCores }: Placement, directory: string): Promise<Receiver> {
  const core = generatorCores[1] ?? generatorCores[0] ?? null
  const command = [process.execPath, join(import.meta.dir, 'peers', 'receiver.ts')]
  const { port, stop } = await startServer({ name: 'receiver', command, env: {} }, core, directory)
  const url = `http://127.0.0.1:${port}`
  return {
    url,
    async until(count) {
      const response = await fetch(`${url}/webhooks/${count}`, { signal: AbortSignal.timeout(WITHIN_MS) })
      const heard = (await response.json()) as Heard
      if (heard.wrong > 0) throw new Error(`${heard.wrong} webhooks came twice or out of order`)
      if (heard.webhooks !== count) throw new Error(`${heard.webhooks} webhooks came instead of ${count}`)
      return heard
    },
    async spans() {
      const response = await fetch(`${url}/spans`, { signal: AbortSignal.timeout(WITHIN_MS) })
      return ((await response.json()) as { spans: number }).spans
    },
    stop,
  }
}

/** An endpoint of the product for all of its events. */
export function addEndpoint(port: number, url: string): Promise<void> {
  return ask(port, 'POST', 'webhooks', { url }, productKey)
}

/** The backend of that product decides on each of its invites. */
export function setInviteHook(port: number, url: string, key: ProductKey): Promise<void> {
  return ask(port, 'PATCH', 'product', { invite_url: url }, key)
}

async function ask(port: number, method: string, path: string, body: object, key: ProductKey): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/server/${path}`, {
    method,
    headers: {
      'Content-Type': 'application/json',
      'X-SVC-Product-Key-ID': key.id,
      'X-SVC-Product-Secret': key.secret,
    },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`${path} was answered ${response.status}: ${await response.text()}`)
}
