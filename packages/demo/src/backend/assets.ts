import { fileURLToPath } from 'node:url'

const pageDirectory = new URL('../page/', import.meta.url)
const styles = ['base.css', 'sign-in.css', 'frame.css', 'stage.css', 'incoming.css', 'log.css', 'layout.css']

// The page loads nothing from elsewhere, and nothing may be injected into it. Connections are open because the service's
// address comes with the token and need not be the page's own.
const contentSecurityPolicy = [
  "default-src 'self'",
  "connect-src 'self' ws: wss: http: https:",
  "media-src 'self' blob:",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

async function bundlePage(): Promise<Blob> {
  const entry = fileURLToPath(new URL('main.ts', pageDirectory))
  const { outputs } = await Bun.build({ entrypoints: [entry], target: 'browser', sourcemap: 'none' })
  const script = outputs[0]
  if (!script) throw new Error('The demo page has no script.')
  return script
}

/** The page's files. Its TypeScript is bundled on the first request, so there is no build step. */
export function createAssets() {
  let script: Promise<Blob> | undefined

  const file = (name: string) => async () => Bun.file(new URL(name, pageDirectory))
  const files: Record<string, { type: string; load: () => Promise<Blob> }> = {
    '': { type: 'text/html; charset=utf-8', load: file('index.html') },
    ...Object.fromEntries(styles.map((name) => [name, { type: 'text/css; charset=utf-8', load: file(name) }])),
    'icon.svg': { type: 'image/svg+xml', load: file('icon.svg') },
    'main.js': {
      type: 'text/javascript; charset=utf-8',
      load: () => {
        script ??= bundlePage()
        return script
      },
    },
  }

  return {
    async find(name: string): Promise<Response | undefined> {
      const asset = Object.hasOwn(files, name) ? files[name] : undefined
      if (!asset) return undefined
      return new Response(await asset.load(), {
        headers: {
          'content-type': asset.type,
          'cache-control': 'no-cache',
          'content-security-policy': contentSecurityPolicy,
          'referrer-policy': 'no-referrer',
          'x-content-type-options': 'nosniff',
        },
      })
    },
  }
}
