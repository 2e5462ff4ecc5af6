import { join } from 'node:path'
import type { Person } from './service.ts'

const folder = join(import.meta.dir, '..', 'page')

/**
 * Serves a page whose script is one of `../page`, bundled; and what an application's backend would: `/token` for the
 * person whom the page's query names.
 */
export async function servePage(
  script: string,
  token?: (person: Person) => Promise<Response>,
): Promise<{ url: string; stop(): Promise<void> }> {
  const { outputs } = await Bun.build({ entrypoints: [join(folder, script)], target: 'browser' })
  const [bundle] = outputs
  if (!bundle) throw new Error(`${script} cannot be bundled`)
  const text = await bundle.text()
  const typed = (body: string, type: string) => new Response(body, { headers: { 'content-type': type } })
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch({ url }) {
      const { pathname, searchParams } = new URL(url)
      if (pathname === '/page.js') return typed(text, 'text/javascript')
      if (pathname === '/token' && token) {
        const get = (name: string) => searchParams.get(name) ?? ''
        const person = { userId: get('user'), role: get('role'), peerRole: get('peer'), deviceId: get('device') }
        const answer = await token(person).catch(() => undefined)
        return answer ? typed(await answer.text(), 'application/json') : new Response('', { status: 502 })
      }
      return typed('<!doctype html><title>Test</title><script type="module" src="/page.js"></script>', 'text/html')
    },
  })
  return { url: `http://127.0.0.1:${server.port}/`, stop: () => server.stop(true) }
}
