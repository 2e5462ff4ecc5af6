/** The options of `createRingwire`, checked: what is missing or wrong is an error that says what to give. */
import { RingwireError } from './error.ts'

export interface RingwireOptions {
  /** The address of the service, as `https://calls.example.com`. Default: the environment variable `RINGWIRE_URL`. */
  readonly url?: string
  /**
   * The product key and its secret. Both belong to the backend; a client never has them. Default: the environment variables
   * `RINGWIRE_KEY_ID` and `RINGWIRE_KEY_SECRET`.
   */
  readonly keyId?: string
  readonly secret?: string
  /** Required if the key has several products. */
  readonly product?: string
  /** How long a request may take, in ms, 1 to 2147483647. Default: 10000. */
  readonly timeoutMs?: number
  /** Default: the runtime's own. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>
}

export interface CheckedOptions {
  /** Without a slash at its end. */
  readonly base: string
  readonly keyId: string
  readonly secret: string
  readonly product: string | undefined
  readonly timeoutMs: number
  readonly ask: (url: string, init: RequestInit) => Promise<Response>
}

const names = ['url', 'keyId', 'secret', 'product', 'timeoutMs', 'fetch']
const variables = { url: 'RINGWIRE_URL', keyId: 'RINGWIRE_KEY_ID', secret: 'RINGWIRE_KEY_SECRET' } as const
type Name = keyof typeof variables
const longestMs = 2 ** 31 - 1

/** Throws a `RingwireError` with the code INVALID_ARGUMENT. No message holds the secret. */
export function checkOptions(options: RingwireOptions): CheckedOptions {
  if (typeof options !== 'object' || options === null) throw wrong('options', 'must be an object', options)
  for (const name of Object.keys(options)) {
    if (!names.includes(name)) throw invalid(`createRingwire has no option "${name}". It has ${names.join(', ')}.`)
  }
  const base = baseOf(given(options, 'url'))
  const [keyId, secret] = [headerText(options, 'keyId'), headerText(options, 'secret')]
  const { product, timeoutMs = 10_000, fetch: ask = fetch } = options
  if (product !== undefined && (typeof product !== 'string' || product.trim() === '')) {
    throw wrong('product', 'must be the name of a product of the key', product)
  }
  if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > longestMs) {
    throw wrong('timeoutMs', `must be a whole number of milliseconds, 1 to ${longestMs}`, timeoutMs)
  }
  if (typeof ask !== 'function') throw wrong('fetch', 'must be a function like fetch', ask)
  return { base, keyId, secret, product, timeoutMs, ask }
}

/** The option, or its environment variable. An empty variable counts as unset. */
function given(options: RingwireOptions, name: Name): string {
  const variable = variables[name]
  // Not every runtime has a process.
  const env = typeof process === 'undefined' ? {} : process.env
  const value: unknown = options[name] ?? (env[variable]?.trim() || undefined)
  const what = name === 'url' ? 'the address of the service' : 'ringwire keys create prints it'
  if (value === undefined) throw invalid(`${name} is missing. Give it, or set ${variable} (${what}).`)
  if (typeof value === 'string' && value.trim() !== '') return value.trim()
  throw invalid(`${name} must be a text that is not empty. Give it, or set ${variable} (${what}).`)
}

/** Keys and secrets travel in headers. */
function headerText(options: RingwireOptions, name: 'keyId' | 'secret'): string {
  const value = given(options, name)
  if (/^[\x21-\x7e]+$/.test(value)) return value
  throw invalid(`${name} has a character that no ${name} has, such as a space or a line end. Copy it again.`)
}

function baseOf(text: string): string {
  const how = `Give it as https://calls.example.com, or set ${variables.url}.`
  // A user name or a password in it is not shown.
  if (!URL.canParse(text)) throw invalid(`url ${text.includes('@') ? '' : `"${text}" `}is not an absolute URL. ${how}`)
  const { protocol, host, search, hash, username, password } = new URL(text)
  if (protocol === 'ws:' || protocol === 'wss:') {
    const scheme = protocol.replace('ws', 'http')
    throw invalid(`url must begin with https:// or http://. ${protocol}// is for clients: give ${scheme}//${host}.`)
  }
  if (protocol !== 'https:' && protocol !== 'http:') {
    throw invalid(`url must begin with https:// or http://, not with ${protocol}. ${how}`)
  }
  if (username !== '' || password !== '') throw invalid(`url must hold no user name and no password. ${how}`)
  if (search !== '' || hash !== '') throw invalid(`url must end before "${text.includes('?') ? '?' : '#'}". ${how}`)
  return text.replace(/\/+$/, '')
}

const invalid = (message: string) => new RingwireError('INVALID_ARGUMENT', message)
const wrong = (name: string, rule: string, value: unknown) =>
  invalid(`${name} ${rule}; this is ${typeof value === 'string' ? JSON.stringify(value) : String(value)}.`)
