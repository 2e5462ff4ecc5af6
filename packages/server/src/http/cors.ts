/** Which web pages may read an answer. Nothing here authenticates: tokens do, not cookies. */
export interface Cors {
  /** Headers of an answer to this request. */
  grants(headers: Headers): Record<string, string>
  /** Headers of the answer to a preflight. */
  preflight(headers: Headers): Record<string, string>
}

export function createCors(allowedOrigins: readonly string[] | null): Cors {
  function grants(headers: Headers): Record<string, string> {
    if (allowedOrigins === null) return { 'Access-Control-Allow-Origin': '*', ...exposed }
    const origin = headers.get('origin')
    // The answer depends on who asks, also where it grants nothing.
    if (origin === null || !allowedOrigins.includes(origin.toLowerCase())) return { Vary: 'Origin' }
    return { Vary: 'Origin', 'Access-Control-Allow-Origin': origin, ...exposed }
  }
  return {
    grants,
    preflight(headers) {
      const granted = grants(headers)
      if (granted['Access-Control-Allow-Origin'] === undefined) return granted
      return {
        ...granted,
        'Access-Control-Allow-Methods': 'GET, HEAD, POST, PUT, DELETE',
        'Access-Control-Allow-Headers': 'Authorization, Content-Type',
        'Access-Control-Max-Age': '7200',
      }
    },
  }
}

const exposed = { 'Access-Control-Expose-Headers': 'Retry-After' }
