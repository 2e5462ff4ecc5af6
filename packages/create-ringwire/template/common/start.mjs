// `npm start`: bundles the page, serves it with the backend, and starts a service where .env names none.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { createRingwire } from '@ringwire/server-sdk'
import { build } from 'esbuild'
import { createBackend } from './backend.mjs'
import { startService, tellBackend } from './service.mjs'

const here = (path) => fileURLToPath(new URL(path, import.meta.url))

if (existsSync(here('.env'))) process.loadEnvFile(here('.env'))
const { RINGWIRE_URL, PRODUCT, RINGWIRE_KEY_ID, RINGWIRE_KEY_SECRET, PORT = '3000' } = process.env
if (!RINGWIRE_KEY_ID || !RINGWIRE_KEY_SECRET) {
  console.error(
    'Set RINGWIRE_KEY_ID and RINGWIRE_KEY_SECRET in .env: ringwire keys create prints them, where the service runs.',
  )
  process.exit(1)
}
const key = { product: PRODUCT, keyId: RINGWIRE_KEY_ID, secret: RINGWIRE_KEY_SECRET }

await build({
  entryPoints: [here(existsSync(here('page/main.tsx')) ? 'page/main.tsx' : 'page/main.ts')],
  absWorkingDir: here('.'),
  ...{ outdir: 'dist', bundle: true, format: 'esm', minify: true, jsx: 'automatic' },
})
const serviceUrl = RINGWIRE_URL || (await startService(key))
const ringwire = createRingwire({ ...key, url: serviceUrl })

const files = {
  '/': ['page/index.html', 'text/html'],
  '/style.css': ['page/style.css', 'text/css'],
  '/main.js': ['dist/main.js', 'text/javascript'],
  // The styles of the components; a page without a framework has none.
  '/main.css': ['dist/main.css', 'text/css'],
}
/** The page loads nothing from elsewhere, nothing may be injected into it, and it only talks to this server and the service. */
const headers = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': [
    "default-src 'self'",
    `connect-src 'self' ${new URL(serviceUrl).origin.replace(/^http/, 'ws')}`,
    ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
  ].join('; '),
}

let backend
const server = createServer(async (request, response) => {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
  // Until there are secrets to verify webhooks with: Ringwire sends them again.
  if (backend === undefined) return response.writeHead(503).end()
  if (await backend(request, response)) return
  const { pathname } = new URL(request.url, 'http://localhost')
  const [file, type] = Object.hasOwn(files, pathname) ? files[pathname] : []
  if (file === undefined || !existsSync(here(file))) return response.writeHead(404).end()
  response.writeHead(200, { 'Content-Type': `${type}; charset=utf-8`, 'Cache-Control': 'no-cache' })
  response.end(await readFile(here(file)))
})
server.on('error', (error) => {
  const isTaken = error.code === 'EADDRINUSE'
  console.error(isTaken ? `Port ${PORT} is in use: set PORT in .env to another one.` : error.message)
  process.exit(1)
})
server.listen(Number(PORT), '127.0.0.1', async () => {
  const url = `http://127.0.0.1:${server.address().port}`
  const { WEBHOOK_SECRET: webhook, INVITE_SECRET: invite } = process.env
  const secrets = RINGWIRE_URL ? { webhook, invite } : await tellBackend(ringwire, url)
  backend = createBackend({ ringwire, secrets })
  console.log(`Open ${url} here and in a private window`)
})
