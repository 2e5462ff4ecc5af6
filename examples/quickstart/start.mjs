// `npm start`: the service, with a key that is made for this run, and the application on http://127.0.0.1:3000.
// If RINGWIRE_URL, RINGWIRE_KEY_ID and RINGWIRE_KEY_SECRET are set, it uses that service: browsers reach it at RINGWIRE_URL,
// too.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { callToken, signIn } from './backend.mjs'

const { RINGWIRE_URL, PORT = '3000' } = process.env
// KEY_ID and SECRET are earlier names of the same.
const keyId = process.env.RINGWIRE_KEY_ID ?? process.env.KEY_ID ?? 'quickstart'
const secret = process.env.RINGWIRE_KEY_SECRET ?? process.env.SECRET ?? randomBytes(32).toString('hex')

await build({
  entryPoints: ['plain/main.ts', 'react/main.tsx', 'ui/main.tsx'],
  absWorkingDir: fileURLToPath(new URL('.', import.meta.url)),
  ...{ outdir: 'dist', bundle: true, format: 'esm', minify: true, jsx: 'automatic' },
  // The packages as they are installed here, whatever a tsconfig.json above this folder says.
  tsconfigRaw: {},
})
const service = { url: RINGWIRE_URL ?? (await startService()), keyId, secret }

const files = {
  '/': ['index.html', 'text/html'],
  '/style.css': ['style.css', 'text/css'],
  '/plain/': ['plain/index.html', 'text/html'],
  '/plain/main.js': ['dist/plain/main.js', 'text/javascript'],
  '/react/': ['react/index.html', 'text/html'],
  '/react/main.js': ['dist/react/main.js', 'text/javascript'],
  '/ui/': ['ui/index.html', 'text/html'],
  '/ui/main.js': ['dist/ui/main.js', 'text/javascript'],
  '/ui/main.css': ['dist/ui/main.css', 'text/css'],
}

/** The page loads nothing from elsewhere, nothing may be injected into it, and it only talks to this server and the service. */
const headers = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': [
    "default-src 'self'",
    `connect-src 'self' ${new URL(service.url).origin.replace(/^http/, 'ws')}`,
    ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
  ].join('; '),
}

async function answer(request, response) {
  const { pathname, searchParams } = new URL(request.url, 'http://localhost')
  if (request.method === 'POST' && pathname === '/sign-in') return signIn(searchParams.get('name'), response)
  if (request.method === 'POST' && pathname === '/call-token') return callToken(service, request, response)
  if (!Object.hasOwn(files, pathname)) return response.writeHead(404).end()
  const [file, type] = files[pathname]
  response
    .writeHead(200, { 'Content-Type': `${type}; charset=utf-8` })
    .end(await readFile(new URL(file, import.meta.url)))
}

const server = createServer((request, response) => {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
  answer(request, response).catch((error) => {
    console.error(error.message)
    response.writeHead(502).end()
  })
})
server.listen(Number(PORT), '127.0.0.1', () =>
  console.log(`Open http://127.0.0.1:${server.address().port} here and in a private window`),
)

/** Resolves with the URL of the service when it listens. It ends with this process. */
function startService() {
  // Any port that is free: the demo of the clone may have 8080.
  const env = { RINGWIRE_PORT: '0', ...process.env, RINGWIRE_BOOTSTRAP_KEYS: `${keyId}:${secret}:quickstart` }
  const ringwire = fileURLToPath(new URL('node_modules/.bin/ringwire', import.meta.url))
  const child = spawn(ringwire, ['serve'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  process.on('exit', () => child.kill())
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit())
  child.on('exit', (code) => process.exit(code ?? 1))
  return new Promise((resolve) => {
    let said = ''
    child.stdout.on('data', (bytes) => {
      said += bytes
      const [, url] = /Ringwire listens on (\S+)\n/.exec(said) ?? []
      if (url !== undefined) resolve(url)
    })
  })
}
