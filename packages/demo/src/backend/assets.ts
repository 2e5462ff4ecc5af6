import { fileURLToPath } from 'node:url'
import type { BunPlugin } from 'bun'

const pageDirectory = new URL('../page/', import.meta.url)
const styles = ['base.css', 'sign-in.css', 'frame.css', 'log.css', 'layout.css']

/**
 * The page loads nothing from elsewhere, nothing may be injected into it, and it talks to its service alone. Some browsers
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

/** The page is written for React and runs on Preact, which is a tenth of its size. */
const onPreact: BunPlugin = {
  name: 'on-preact',
  setup(build) {
    const standIns: Record<string, string> = {
      react: 'preact/compat',
      'react-dom': 'preact/compat',
      'react-dom/client': 'preact/compat/client',
      'react/jsx-runtime': 'preact/compat/jsx-runtime',
    }
    build.onResolve({ filter: /^react(-dom)?(\/|$)/ }, ({ path }) => ({
      path: fileURLToPath(import.meta.resolve(standIns[path] ?? path)),
    }))
  },
}

async function bundleScript(name: string): Promise<string> {
  const { outputs } = await Bun.build({
    entrypoints: [fileURLToPath(new URL(name, pageDirectory))],
    target: 'browser',
    minify: true,
    define: { 'process.env.NODE_ENV': '"production"' },
    plugins: [onPreact],
  })
  if (!outputs[0]) throw new Error(`${name} gives no script.`)
  return outputs[0].text()
}

async function joinStyles(): Promise<string> {
  const own = styles.map((name) => new URL(name, pageDirectory))
  const files = [new URL(import.meta.resolve('@ringwire/ui/ui.css')), ...own]
  const texts = await Promise.all(files.map((file) => Bun.file(file).text()))
  return texts.join('\n')
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

/** The page's files. They are bundled and compressed once, on the first request, so there is no build step. */
export function createAssets() {
  const file = (name: string) => () => Bun.file(new URL(name, pageDirectory)).text()
  const files: Record<string, { type: string; load: () => Promise<string> }> = {
    '': { type: 'text/html; charset=utf-8', load: file('index.html') },
    'page.css': { type: 'text/css; charset=utf-8', load: joinStyles },
    'icon.svg': { type: 'image/svg+xml', load: file('icon.svg') },
    'main.js': { type: 'text/javascript; charset=utf-8', load: () => bundleScript('main.tsx') },
    'pulse.js': { type: 'text/javascript; charset=utf-8', load: () => bundleScript('pulse.ts') },
  }
  const contents = new Map<string, Promise<Content>>()

  return {
    /** `host` is the page's own, and one that was checked. */
    async find(request: Request, name: string, host: string, publicUrl: string | null = null) {
      const asset = Object.hasOwn(files, name) ? files[name] : undefined
      if (!asset) return undefined
      const content = contents.get(name) ?? pack(asset.load())
      contents.set(name, content)
      const { plain, gzipped } = await content
      const isGzipped = takesGzip(request)
      return new Response(isGzipped ? gzipped : plain, {
        headers: {
          'content-type': asset.type,
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
