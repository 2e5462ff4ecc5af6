// What a backend asks of the service.
import { productKey } from './tokens.ts'

export interface BackendRequest {
  readonly path: string
  readonly method?: 'GET' | 'DELETE'
}

/** The answer, and how long it took, in ms. A request that takes longer than one may, such as an erasure, is repeated. */
export async function askBackend(
  port: number,
  { path, method = 'GET' }: BackendRequest,
): Promise<{ ms: number; text: string }> {
  const headers = { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret }
  const began = performance.now()
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers })
    const text = await response.text()
    if (response.ok) return { ms: performance.now() - began, text }
    if (response.status !== 503) throw new Error(`${method} ${path}: ${response.status}`)
  }
}
