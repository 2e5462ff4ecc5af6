import { fileURLToPath } from 'node:url'

const pageDirectory = new URL('../page/', import.meta.url)
const styles = ['base.css', 'sign-in.css', 'frame.css', 'stage.css', 'incoming.css', 'log.css', 'layout.css']

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
    /** `host` is the page's own, and one that was checked. */
    async find(name: string, host: string, publicUrl: string | null = null): Promise<Response | undefined> {
      const asset = Object.hasOwn(files, name) ? files[name] : undefined
      if (!asset) return undefined
      return new Response(await asset.load(), {
        headers: {
          'content-type': asset.type,
          'cache-control': 'no-cache',
          'content-security-policy': contentSecurityPolicy(host, publicUrl),
          'referrer-policy': 'no-referrer',
          'x-content-type-options': 'nosniff',
        },
      })
    },
  }
}
