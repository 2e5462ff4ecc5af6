import { type RequestOptions, request as requestPlain } from 'node:http'
import { request as requestTls } from 'node:https'
import { createAddressGuard, hostOf, lookupOf, resolveHost } from '../outgoing/addresses.ts'

/** POSTs to a URL that a stranger gave; answers the status. Rejects where there was none. */
export type WebPost = (
  url: string,
  headers: Readonly<Record<string, string>>,
  body: Uint8Array,
  signal: AbortSignal,
) => Promise<{ readonly status: number; readonly retryAfter: string | undefined }>

export class AddressNotAllowed extends Error {
  readonly code = 'address not allowed'
}

/**
 * No request goes to a private, loopback, link-local or otherwise special address, by no name, and without TLS to none at
 * all; redirects are not followed. `trusted`: an origin that may be anywhere.
 */
export function createWebPost(trusted: string | null, resolve = resolveHost): WebPost {
  const guard = createAddressGuard([])
  return async (text, headers, body, signal) => {
    const url = new URL(text)
    const addresses = await unlessOver(resolve(hostOf(url)), signal)
    if (url.origin !== trusted && (url.protocol !== 'https:' || !addresses.every(guard.allows))) {
      throw new AddressNotAllowed('the address is not allowed')
    }
    const options: RequestOptions = {
      method: 'POST',
      headers: { ...headers, 'Content-Length': String(body.byteLength) },
      agent: false,
      signal,
      lookup: lookupOf(addresses),
    }
    return new Promise((resolve, reject) => {
      const request = (url.protocol === 'https:' ? requestTls : requestPlain)(url, options, (response) => {
        resolve({ status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'] })
        // What it says beside is not read.
        response.on('error', () => {})
        response.destroy()
      })
      request.on('error', reject)
      request.end(body)
    })
  }
}

/** A stranger chose the name, and who answers for it: the look-up has the same deadline as the rest. */
function unlessOver<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const giveUp = () => reject(signal.reason)
  if (signal.aborted) giveUp()
  signal.addEventListener('abort', giveUp, { once: true })
  return Promise.race([work, promise]).finally(() => signal.removeEventListener('abort', giveUp))
}
