/**
 * Path and query of a request, read without its Host header: that is the client's to write, and a `URL` made of a bad one
 * throws (RFC 9112 section 3.2).
 */
export function targetOf(request: Request): { path: string; query: string } {
  const afterHost = /^(?:[a-z]+:\/\/[^/?#]*)?([^?#]*)(?:\?([^#]*))?/i.exec(request.url)
  return { path: afterHost?.[1] || '/', query: afterHost?.[2] ?? '' }
}
