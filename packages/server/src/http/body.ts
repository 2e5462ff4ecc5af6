/** The bound of a request body [TOK1]. */
export const maxBodyBytes = 16 * 1024

export type JsonBody = { ok: true; value: Record<string, unknown> } | { ok: false; message: string }

/** Reads a body that has to be a JSON object. Its size is what arrives, whatever Content-Length says. */
export async function readJsonObject(request: Request): Promise<JsonBody> {
  const bytes = await readBounded(request)
  if (bytes === 'too big') return { ok: false, message: 'The request body is over 16 KiB.' }
  if (bytes === 'broken') return { ok: false, message: 'The request body could not be read.' }
  if (bytes.length === 0) return { ok: false, message: 'The request body is missing.' }
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return { ok: false, message: 'The request body is not UTF-8.' }
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // Also where it is nested deeper than the parser goes.
    return { ok: false, message: 'The request body is not JSON.' }
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { ok: false, message: 'The request body is not a JSON object.' }
  }
  return { ok: true, value: value as Record<string, unknown> }
}

async function readBounded(request: Request): Promise<Uint8Array | 'too big' | 'broken'> {
  if (Number(request.headers.get('content-length')) > maxBodyBytes) return 'too big'
  if (request.body === null) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let size = 0
  const reader = request.body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      size += value.byteLength
      if (size > maxBodyBytes) {
        await reader.cancel()
        return 'too big'
      }
      chunks.push(value)
    }
  } catch {
    return 'broken'
  }
  return Buffer.concat(chunks)
}
