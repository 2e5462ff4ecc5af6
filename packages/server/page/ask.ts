/** The requests of the page to its own listener. */

export class Refused extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.name = 'Refused'
    this.status = status
    this.code = code
  }
}

export interface Asked {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly body?: unknown
}

/** Told when the service does not know this operator any more. */
export const signedOut = new EventTarget()

/** Below /admin/api/; parts of the path are encoded already. Rejects with `Refused`. */
export async function ask<T>(path: string, { method = 'GET', query = {}, body }: Asked = {}): Promise<T> {
  const given = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]))
  const search = given.length === 0 ? '' : `?${new URLSearchParams(given)}`
  let response: Response
  try {
    response = await fetch(`api/${path}${search}`, {
      method,
      // A form of another site cannot send this.
      headers: { 'X-Ringwire-Admin': '1' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  } catch {
    throw new Refused(0, 'UNREACHABLE', 'The service does not answer.')
  }
  if (response.status === 204) return undefined as T
  const answer = await response.json().catch(() => ({}))
  if (response.ok) return answer as T
  if (response.status === 401 && path !== 'session') signedOut.dispatchEvent(new Event('signed-out'))
  const { code = 'UNKNOWN', message = `The service answered ${response.status}.` } = answer.error ?? {}
  throw new Refused(response.status, code, message)
}

export const textOf = (error: unknown) => (error instanceof Error ? error.message : String(error))
