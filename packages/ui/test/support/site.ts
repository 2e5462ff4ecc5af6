import { join } from 'node:path'
import { limitsAsShipped, Service } from '@ringwire/testkit/service'
import type { BunPlugin } from 'bun'

const packages = join(import.meta.dir, '..', '..', '..')

/** As an application does it that has Preact in place of React. */
const onPreact: BunPlugin = {
  name: 'preact',
  setup(build) {
    const names: Record<string, string> = {
      react: 'preact/compat',
      'react-dom': 'preact/compat',
      'react-dom/client': 'preact/compat/client',
      'react/jsx-runtime': 'preact/jsx-runtime',
      'react/jsx-dev-runtime': 'preact/jsx-runtime',
    }
    build.onResolve({ filter: /^react(-dom)?(\/.*)?$/ }, ({ path }) => {
      const name = names[path]
      return name === undefined ? undefined : { path: Bun.resolveSync(name, join(packages, 'ui')) }
    })
  },
}

export type Runtime = 'react' | 'preact'

export interface Bundle {
  readonly script: string
  /** What the page imports of it; else the sheet of the package is linked. */
  readonly styles: string
}

/** React as it is while one develops: there StrictMode mounts everything twice. */
export async function bundlePage(entry: string, runtime: Runtime = 'react'): Promise<Bundle> {
  const { outputs } = await Bun.build({
    entrypoints: [entry],
    target: 'browser',
    conditions: ['bun'],
    define: { 'process.env.NODE_ENV': runtime === 'react' ? '"development"' : '"production"' },
    plugins: runtime === 'preact' ? [onPreact] : [],
  })
  const text = async (extension: string) => outputs.find(({ path }) => path.endsWith(extension))?.text()
  const [script, styles] = await Promise.all([text('.js'), text('.css')])
  return { script: script ?? '', styles: styles ?? (await sheet.text()) }
}

const sheet = Bun.file(join(packages, 'ui', 'src', 'ui.css'))

const html = `<!doctype html>
<html lang="en">
  <head>
    <title>Phone</title>
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <link rel="stylesheet" href="/ui.css" />
    <style>
      body { margin: 0; font-family: system-ui, sans-serif; background: Canvas; color: CanvasText; }
      main { display: flex; flex-direction: column; height: 100dvh; }
      .rw-stage { flex: 1; }
      h1 { margin: 4px; font-size: 14px; }
    </style>
  </head>
  <body><div id="root"></div><script type="module" src="/page.js"></script></body>
</html>`

/** The real service, and an application's server in front: the page, its script, and `/call-token` for the signed-in user. */
export async function openSite({ script, styles }: Bundle) {
  const service = await new Service({ ...limitsAsShipped }).start()
  const typed = (body: BodyInit, type: string) => new Response(body, { headers: { 'content-type': type } })
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch({ url, headers }) {
      const { pathname } = new URL(url)
      if (pathname === '/page.js') return typed(script, 'text/javascript')
      if (pathname === '/ui.css') return typed(styles, 'text/css')
      if (pathname !== '/call-token') return typed(html, 'text/html')
      // The query of the page stands for a cookie.
      const { searchParams } = new URL(headers.get('referer') ?? url)
      const get = (name: string) => searchParams.get(name) ?? ''
      const user = {
        ...{ user_id: get('user'), role: get('role'), allowed_peer_role: get('peer') },
        ...{ display_name: get('name'), device_id: get('device') },
      }
      const token = await service.issue(user)
      return Response.json({ ...token, ws_url: get('ws') || token.ws_url })
    },
  })
  return {
    service,
    url: `http://127.0.0.1:${server.port}/`,
    async close() {
      await server.stop(true)
      await service.dispose()
    },
  }
}

export type Site = Awaited<ReturnType<typeof openSite>>
