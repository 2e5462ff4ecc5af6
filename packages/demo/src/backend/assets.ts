import { type PageFile, pageFiles, readPageFile } from './page-files.ts'

/**
 * The page loads nothing from elsewhere, nothing may be injected into it, and it only talks to its service. Some browsers
 * do not count a WebSocket of the page's own host as its own.
 */
function contentSecurityPolicy(host: string, publicUrl: string | null): string {
  const service = [host, ...(publicUrl === null ? [] : [new URL(publicUrl).host])]
  const sockets = [...new Set(service)].flatMap((name) => [`ws://${name}`, `wss://${name}`])
  return [
    "default-src 'self'",
    ["connect-src 'self'", ...sockets, ...(publicUrl === null ? [] : [new URL(publicUrl).origin])].join(' '),
    "media-src 'self' blob:",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

type Content = { readonly plain: Uint8Array<ArrayBuffer>; readonly gzipped: Uint8Array<ArrayBuffer> }

async function pack(text: Promise<string>): Promise<Content> {
  const plain = new TextEncoder().encode(await text)
  return { plain, gzipped: Bun.gzipSync(plain, { level: 9 }) }
}

/** True where gzip is named and its weight is not 0. */
function takesGzip(request: Request): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(request.headers.get('accept-encoding') ?? '')
}

/** The page's files. They are made and compressed once, on the first request, so there is no build step. */
export function createAssets() {
  const contents = new Map<string, Promise<Content>>()

  return {
    /** `host` is the page's own, and one that was checked. */
    async find(request: Request, name: string, host: string, publicUrl: string | null = null) {
      if (!Object.hasOwn(pageFiles, name)) return undefined
      const content = contents.get(name) ?? pack(readPageFile(name as PageFile))
      contents.set(name, content)
      const { plain, gzipped } = await content
      const isGzipped = takesGzip(request)
      return new Response(isGzipped ? gzipped : plain, {
        headers: {
          'content-type': pageFiles[name as PageFile],
          ...(isGzipped ? { 'content-encoding': 'gzip' } : {}),
          vary: 'accept-encoding',
          'cache-control': 'no-cache',
          'content-security-policy': contentSecurityPolicy(host, publicUrl),
          'referrer-policy': 'no-referrer',
          'x-content-type-options': 'nosniff',
        },
      })
    },
  }
}
