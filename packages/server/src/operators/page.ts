import { type PageFile, pageFiles, readPageFile } from './page-files.ts'

/** The page loads its own files, talks to its own listener, runs no text as a script, and is shown in no frame. */
const headers = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'X-Frame-Options': 'DENY',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), microphone=(), geolocation=()',
  'Cache-Control': 'no-cache',
  Vary: 'Accept-Encoding',
}

interface Content {
  readonly plain: Uint8Array<ArrayBuffer>
  readonly gzipped: Uint8Array<ArrayBuffer>
}

/** The files of the operator's page. Each is made and compressed once, on the first request, so there is no build step. */
export function createPage(read: (name: PageFile) => Promise<string> = readPageFile) {
  const contents = new Map<PageFile, Promise<Content>>()

  async function pack(name: PageFile): Promise<Content> {
    try {
      const plain = new TextEncoder().encode(await read(name))
      return { plain, gzipped: Bun.gzipSync(plain, { level: 9 }) }
    } catch (error) {
      // The next request tries again.
      contents.delete(name)
      throw error
    }
  }

  /** `name`: what follows /admin/. Undefined if there is no such file. */
  return async (request: Request, name: string): Promise<Response | undefined> => {
    if (!isFile(name)) return undefined
    const content = contents.get(name) ?? pack(name)
    contents.set(name, content)
    const { plain, gzipped } = await content
    const isGzipped = /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(request.headers.get('accept-encoding') ?? '')
    return new Response(isGzipped ? gzipped : plain, {
      headers: { 'Content-Type': pageFiles[name], ...headers, ...(isGzipped && { 'Content-Encoding': 'gzip' }) },
    })
  }
}

const isFile = (name: string): name is PageFile => Object.hasOwn(pageFiles, name)
