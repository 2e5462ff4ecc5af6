import { join } from 'node:path'

const folder = join(import.meta.dir, '..', 'page')

/** Serves a page whose script is one of `../page`, bundled. */
export async function servePage(script: string): Promise<{ url: string; stop(): Promise<void> }> {
  const { outputs } = await Bun.build({ entrypoints: [join(folder, script)], target: 'browser' })
  const [bundle] = outputs
  if (!bundle) throw new Error(`${script} cannot be bundled`)
  const text = await bundle.text()
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: ({ url }) =>
      new URL(url).pathname === '/page.js'
        ? new Response(text, { headers: { 'content-type': 'text/javascript' } })
        : new Response('<!doctype html><title>Test</title><script type="module" src="/page.js"></script>', {
            headers: { 'content-type': 'text/html' },
          }),
  })
  return { url: `http://127.0.0.1:${server.port}/`, stop: () => server.stop(true) }
}
