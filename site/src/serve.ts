/** Shows a built site on this machine. `serve.ts FOLDER BASE PORT`. */
import { existsSync, statSync } from 'node:fs'
import { join, normalize } from 'node:path'

const [folder = '', base = '/', port = '8081'] = process.argv.slice(2)

function fileOf(pathname: string): string | undefined {
  if (!pathname.startsWith(base)) return undefined
  const path = normalize(decodeURIComponent(pathname.slice(base.length)))
  if (path.startsWith('..')) return undefined
  const file = join(folder, pathname.endsWith('/') ? join(path, 'index.html') : path)
  return existsSync(file) && statSync(file).isFile() ? file : undefined
}

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: Number(port),
  fetch(request) {
    const file = fileOf(new URL(request.url).pathname)
    if (file !== undefined) return new Response(Bun.file(file))
    return new Response(Bun.file(join(folder, '404.html')), { status: 404 })
  },
})
console.log(`http://127.0.0.1:${server.port}${base}`)
