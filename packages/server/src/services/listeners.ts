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

const prefix = 'we_listen_'
/** An answer that takes longer proves nothing, in ms. */
const answerMs = 1_000

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

/** Whether its command has ended, whatever ended it. One that stands still is not gone. */
export async function isGone({ id, url }: Named): Promise<boolean> {
  try {
    const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(answerMs) })
    return (await response.text()) !== id
  } catch (error) {
    return !(error instanceof Error && error.name === 'TimeoutError')
  }
}
