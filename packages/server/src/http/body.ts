/** The bound of a request body [HTTP1]. */
export const maxBodyBytes = 16 * 1024

/** The runtime's own: none, for its refusal has no REST error body. Bodies are measured where they are read [HTTP1]. */
export const runtimeBodyBound = Number.POSITIVE_INFINITY

export type JsonBody =
  | { readonly ok: true; readonly value: Record<string, unknown> }
  | { readonly ok: false; readonly code: 'REQUEST_BODY_TOO_LARGE' }
  | { readonly ok: false; readonly code: 'INVALID_REQUEST_BODY'; readonly message: string }

const invalid = (message: string): JsonBody => ({ ok: false, code: 'INVALID_REQUEST_BODY', message })

/** Whether a request says that its body is too large: nothing of it needs to be read. */
export function saysTooLarge(headers: Headers, maxBytes = maxBodyBytes): boolean {
  return Number(headers.get('content-length')) > maxBytes
}

/**
 * Reads a body that has to be a JSON object, whatever its Content-Type says. Its size is what arrives: the runtime itself
 * has no bound, for it would answer without the REST error body. `empty`: what no body stands for; where it is not given, one
 * is required.
 */
export async function readJsonObject(
  request: Request,
  empty?: Record<string, unknown>,
  maxBytes = maxBodyBytes,
): Promise<JsonBody> {
  const bytes = await readBounded(request, maxBytes)
  if (bytes === 'too large') return { ok: false, code: 'REQUEST_BODY_TOO_LARGE' }
  if (bytes === 'broken') return invalid('The request body could not be read.')
  if (bytes.length === 0 && empty !== undefined) return { ok: true, value: empty }
  if (bytes.length === 0) return invalid('The request body is missing. Send a JSON object.')
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return invalid('The request body is not UTF-8.')
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // Also where it is nested deeper than the parser goes.
    return invalid('The request body is not JSON. Send a JSON object.')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return invalid('The request body is not a JSON object.')
  }
  return { ok: true, value: value as Record<string, unknown> }
}

async function readBounded(request: Request, maxBytes: number): Promise<Uint8Array | 'too large' | 'broken'> {
  if (request.body === null) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let size = 0
  const reader = request.body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      size += value.byteLength
      if (size > maxBytes) {
        await reader.cancel()
        return 'too large'
      }
      chunks.push(value)
    }
  } catch {
    return 'broken'
  }
  return Buffer.concat(chunks)
}
