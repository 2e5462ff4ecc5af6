/**
 * Endpoints of `ringwire webhooks listen`: they last as long as that command runs, on the machine of the service.
 *
 * Only the command line makes one, in the store: a backend chooses neither its id nor its URL. So it may be at 127.0.0.1,
 * where no other endpoint may be [HOOK4]. The URL is a server of the command, which answers GET with the id of the endpoint.
 */
import { createHash, randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import type { WebhookEndpoint } from '../ports/webhooks.ts'

type Named = Pick<WebhookEndpoint, 'id' | 'url'>
type Renewed = Pick<WebhookEndpoint, 'id' | 'description'>

const prefix = 'we_listen_'
/** An answer that takes longer proves nothing, in ms. */
const answerMs = 1_000
/** How often the command renews its endpoint, in ms. */
export const renewMs = 60_000
/** An endpoint that was not renewed for this long is left over, in ms. */
export const leftOverMs = 5 * 60_000

/** On another machine 127.0.0.1 is another one: the id names the machine. */
function prefixHere(): string {
  return `${prefix}${createHash('sha256').update(hostname()).digest('hex').slice(0, 8)}_`
}

export function newListenerId(): string {
  return `${prefixHere()}${randomBytes(8).toString('hex')}`
}

export function isListener({ id, url }: Named): boolean {
  return id.startsWith(prefix) && url.startsWith('http://127.0.0.1:')
}

export function isListenerHere(endpoint: Named): boolean {
  return isListener(endpoint) && endpoint.id.startsWith(prefixHere())
}

/** What a command writes into its endpoint each time that it renews it. */
export function runningAt(now: number): string {
  return `ringwire webhooks listen, running at ${new Date(now).toISOString()}`
}

/**
 * Finds the endpoints that no command renews, on whichever machine it was: that machine may be gone for good. A node goes by
 * its own `monotonic` clock since it last saw an endpoint change, so the clocks of machines may differ.
 */
export function createLeftOver(monotonic: () => number) {
  let seen = new Map<string, { readonly description: string | null; readonly at: number }>()
  return <T extends Renewed>(listeners: readonly T[]): T[] => {
    const now = monotonic()
    const before = seen
    seen = new Map(
      listeners.map(({ id, description }) => {
        const known = before.get(id)
        return [id, known?.description === description ? known : { description, at: now }]
      }),
    )
    return listeners.filter(({ id }) => now - (seen.get(id)?.at ?? now) > leftOverMs)
  }
}

/** Whether its command has ended: nobody has its port, or somebody else. Any other failure proves nothing. */
export async function isGone({ id, url }: Named): Promise<boolean> {
  try {
    const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(answerMs) })
    return (await response.text()) !== id
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED'
  }
}
