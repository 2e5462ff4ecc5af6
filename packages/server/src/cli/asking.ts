/** Commands that ask the running service, as a backend does: with a product key. */
import type { Command } from 'commander'
import { CommandFailure, exitCodes, type Surroundings } from './command.ts'
import { requireServiceUrl } from './service-url.ts'
import { certificateProblem } from './untrusted.ts'

export interface AskOptions {
  readonly product: string
  readonly key?: string
  /** Read already. */
  readonly secret?: string
  readonly url?: string
}

/** What an answer may say beside what it was asked for. */
interface Failed {
  readonly error?: { readonly code: string; readonly message: string }
}

export function withServiceOptions(command: Command): Command {
  return command
    .option(
      '--key <id>',
      'product key (default: RINGWIRE_KEY_ID); its secret is RINGWIRE_KEY_SECRET, or standard input',
    )
    .option('--url <url>', 'address of the service (default: RINGWIRE_URL, or the service on this machine)')
}

interface Asked {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Below /v1/server/. */
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly body?: object
  /** How long the service may take, in ms. */
  readonly limitMs?: number
  /** Asks again within that time if the service says when to. */
  readonly asksAgain?: boolean
}

type WithKey<Options> = Options & { readonly key: string; readonly secret: string }

/** The options with the product key and its secret: standard input can be read once. */
export async function withKey<Options extends AskOptions>(
  { env, readInput }: Surroundings,
  options: Options,
): Promise<WithKey<Options>> {
  const key = options.key ?? env.RINGWIRE_KEY_ID
  if (!key) {
    throw new CommandFailure(exitCodes.usage, 'Give --key, or set RINGWIRE_KEY_ID: ringwire keys list shows the keys.')
  }
  const secret = options.secret ?? env.RINGWIRE_KEY_SECRET ?? (await readInput()).trim()
  if (secret === '') {
    throw new CommandFailure(
      exitCodes.usage,
      `Set RINGWIRE_KEY_SECRET to the secret of ${key}, or write it to standard input.`,
    )
  }
  return { ...options, key, secret }
}

/** Undefined if the service says that there is no such thing. */
export async function askService<T>(
  surroundings: Surroundings,
  options: AskOptions,
  asked: Asked,
): Promise<T | undefined> {
  const { method, body, limitMs = 10_000 } = asked
  const { key: keyId, secret } = await withKey(surroundings, options)
  const base = options.url ?? requireServiceUrl(surroundings)
  if (!URL.canParse(base))
    throw new CommandFailure(
      exitCodes.usage,
      `${base} is not a URL. Give --url as http://127.0.0.1:8080, or set RINGWIRE_URL.`,
    )
  const url = new URL(base)
  // A proxy may serve it below a path of its own.
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/v1/server/${asked.path}`
  url.search = `?${new URLSearchParams({ ...asked.query, product: options.product })}`
  const signal = AbortSignal.timeout(limitMs)
  let response: Response
  let answer: (T & Failed) | undefined
  try {
    for (;;) {
      response = await fetch(url, {
        method,
        headers: { 'X-SVC-Product-Key-ID': keyId, 'X-SVC-Product-Secret': secret },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        redirect: 'manual',
        signal,
      })
      answer = read<T & Failed>(await response.text())
      const againS = asked.asksAgain && response.status === 503 ? Number(response.headers.get('retry-after')) : 0
      if (againS === 0) break
      await Bun.sleep(againS * 1_000)
    }
  } catch (error) {
    const message = isTimeout(error)
      ? `${url.origin} did not answer within ${limitMs / 1_000} s.`
      : (certificateProblem(error, url) ??
        `No service answers at ${url.origin}. Start it, or give another --url (RINGWIRE_URL).`)
    throw new CommandFailure(exitCodes.failed, message)
  }
  if (answer !== undefined && response.ok) return answer
  const { code, message } = answer?.error ?? {}
  if (code === undefined) {
    const look = 'Check that --url (RINGWIRE_URL) names the service.'
    throw new CommandFailure(
      exitCodes.failed,
      `${url.origin} answered ${response.status}, but not as Ringwire does. ${look}`,
    )
  }
  if (code === 'NOT_FOUND') return undefined
  throw new CommandFailure(exitCodes.failed, `${code}: ${message ?? ''}`)
}

const isTimeout = (error: unknown) => error instanceof Error && error.name === 'TimeoutError'

/** Undefined where it is no JSON object: something else answers there. */
function read<T>(text: string): T | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as T) : undefined
  } catch {
    return undefined
  }
}
