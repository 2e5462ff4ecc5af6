import { isIP } from 'node:net'
import { type AddressGuard, hostOf } from './addresses.ts'

const maxUrlLength = 2048

/** The words in which a problem is described. */
export interface UrlWords {
  /** What the URL is called where it was given. */
  readonly name: string
  /** What to do where it has to lead to this machine. */
  readonly hint: string
}

/** Checks a URL before any request: where a name leads is checked when something is sent [HOOK4]. */
export function urlProblem(text: unknown, guard: AddressGuard, { name, hint }: UrlWords): string | undefined {
  if (typeof text !== 'string' || text === '' || !URL.canParse(text))
    return `${name} must be an absolute URL, as https://backend.example.com/webhooks.`
  const url = new URL(text)
  if (url.href.length > maxUrlLength) return `${name} must be of at most ${maxUrlLength} characters.`
  if (url.username !== '' || url.password !== '') return `${name} must hold no user name and no password.`
  if (url.hash !== '') return `${name} must hold no fragment.`
  const host = hostOf(url)
  if (url.protocol === 'http:') {
    const isPlain =
      host === 'localhost' ? guard.allowsPlain('127.0.0.1') || guard.allowsPlain('::1') : guard.allowsPlain(host)
    return isPlain ? undefined : `${name} must begin with https://. ${hint}`
  }
  if (url.protocol !== 'https:') return `${name} must begin with https://, not with ${url.protocol}//.`
  if (isIP(host) !== 0 && !guard.allows(host)) return `${name} must lead to a public address. ${hint}`
  return undefined
}
