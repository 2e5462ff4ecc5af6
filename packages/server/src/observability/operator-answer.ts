import type { OperatorAnswer } from './status.ts'

/**
 * An answer to an operator, as it goes from process to process. Never rejects: a store may fail in the middle of a body that is
 * made as it is read, and a part must not be taken for the whole.
 */
export async function wholeAnswer(response: Response): Promise<OperatorAnswer> {
  try {
    const { status, headers } = response
    return { status, headers: Object.fromEntries(headers), body: await response.text() }
  } catch {
    return unavailable('The answer could not be read to its end. Ask again.')
  }
}

/** observability/ is below http/, which words failures elsewhere. */
export function unavailable(message: string): OperatorAnswer {
  const error = { code: 'SERVICE_UNAVAILABLE', message }
  return {
    status: 503,
    headers: { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' },
    body: JSON.stringify({ success: false, error }),
  }
}
