/**
 * The address that clients connect to.
 *
 *   const wsUrl = createWsUrl(config)
 *   wsUrl(requestUrl) → ws_url of a token whose request came to this URL
 */
import { webSocketPath } from '@ringwire/protocol/subprotocol'
import { type Config, isLoopbackHost } from './config.ts'

/** Builds `ws_url` [TOK6]: wss, but for a public URL that says http, or plain HTTP on this machine. */
export function createWsUrl(config: Pick<Config, 'publicUrl'>): (requestUrl: string) => string {
  const { publicUrl } = config
  if (publicUrl !== null) {
    const base = publicUrl.replace(/^http/, 'ws')
    return () => base + webSocketPath
  }
  return (requestUrl) => {
    const { protocol, hostname, host } = new URL(requestUrl)
    const scheme = protocol === 'http:' && isLoopbackHost(hostname) ? 'ws' : 'wss'
    return `${scheme}://${host}${webSocketPath}`
  }
}
