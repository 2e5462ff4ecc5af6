// `npm start`: the service, with a key that is made for this run, and the call centre on http://127.0.0.1:3000.
// If RINGWIRE_URL, RINGWIRE_KEY_ID, RINGWIRE_KEY_SECRET, WEBHOOK_SECRET, INVITE_SECRET and RINGWIRE_VAPID_PUBLIC_KEY are
// set, it uses that service.
import { spawn } from 'node:child_process'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { createRingwire } from '@ringwire/server-sdk'
import { build } from 'esbuild'
import { createBackend } from './backend.mjs'
import { openBook, steps } from './book.mjs'
import { openHours } from './hours.mjs'
import { agents, support } from './people.mjs'

const { RINGWIRE_URL, PORT = '3000' } = process.env
// KEY_ID and SECRET are earlier names of the same.
const keyId = process.env.RINGWIRE_KEY_ID ?? process.env.KEY_ID ?? 'callcenter'
const secret = process.env.RINGWIRE_KEY_SECRET ?? process.env.SECRET ?? randomBytes(32).toString('hex')
const here = (path) => fileURLToPath(new URL(path, import.meta.url))
const data = process.env.RINGWIRE_DATA_DIR ?? here('data')
mkdirSync(data, { recursive: true })

await build({
  entryPoints: ['page/main.tsx', 'page/service-worker.js'],
  absWorkingDir: here('.'),
  ...{ outdir: 'dist', bundle: true, format: 'esm', minify: true, jsx: 'automatic' },
  // The packages as they are installed here, whatever a tsconfig.json above this folder says.
  tsconfigRaw: {},
})
const vapid = vapidKeys()
const serviceUrl = RINGWIRE_URL ?? (await startService())
const ringwire = createRingwire({ url: serviceUrl, keyId, secret })
const book = openBook(`${data}/calls.jsonl`)
const hours = openHours(`${data}/hours.json`)

const files = {
  '/': ['page/index.html', 'text/html'],
  '/style.css': ['page/style.css', 'text/css'],
  '/icon.svg': ['page/icon.svg', 'image/svg+xml'],
  '/main.js': ['dist/main.js', 'text/javascript'],
  '/main.css': ['dist/main.css', 'text/css'],
  '/service-worker.js': ['dist/service-worker.js', 'text/javascript'],
}
/**
 * The page loads nothing from elsewhere, nothing may be injected into it, and it only talks to this server and the
 * service. Its service worker asks the service about rings.
 */
const { origin } = new URL(serviceUrl)
const headers = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': [
    "default-src 'self'",
    `connect-src 'self' ${origin} ${origin.replace(/^http/, 'ws')}`,
    ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
  ].join('; '),
}
let backend
const server = createServer(async (request, response) => {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
  // Until there is a secret to verify webhooks with: Ringwire sends them again.
  if (backend === undefined) return response.writeHead(503).end()
  if (await backend(request, response)) return
  const { pathname } = new URL(request.url, 'http://localhost')
  if (!Object.hasOwn(files, pathname)) return response.writeHead(404).end()
  const [file, type] = files[pathname]
  response.writeHead(200, { 'Content-Type': `${type}; charset=utf-8`, 'Cache-Control': 'no-cache' })
  response.end(await readFile(here(file)))
})
server.listen(Number(PORT), '127.0.0.1', async () => {
  const url = `http://127.0.0.1:${server.address().port}`
  const members = agents.map(({ user_id }) => user_id)
  await ringwire.groups.put(support, { members, strategy: 'all', ring_ms: 30_000 })
  const webhookSecret = process.env.WEBHOOK_SECRET ?? (await webhookEndpoint(`${url}/webhooks`))
  const inviteSecret = process.env.INVITE_SECRET ?? (await decideAt(`${url}/invites`))
  // The list has the calls that began while nobody listened here.
  for await (const call of ringwire.calls.all({ status: 'live' })) book.write(call)
  const secrets = { webhookSecret, inviteSecret }
  backend = createBackend({ ringwire, book, hours, serviceUrl, vapidPublicKey: vapid.publicKey, ...secrets })
  console.log(`Open ${url} here and in a private window`)
})

/** The keys of Web Push. They are kept: browsers have subscribed with them. */
function vapidKeys() {
  const { RINGWIRE_VAPID_PUBLIC_KEY: publicKey, RINGWIRE_VAPID_PRIVATE_KEY: privateKey } = process.env
  if (publicKey !== undefined) return { publicKey, privateKey }
  const file = `${data}/vapid.json`
  if (!existsSync(file)) {
    const { d, x, y } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' })
    const point = Buffer.concat([Buffer.from([4]), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')])
    const keys = { publicKey: point.toString('base64url'), privateKey: d }
    writeFileSync(file, JSON.stringify(keys), { mode: 0o600 })
  }
  return JSON.parse(readFileSync(file, 'utf8'))
}

/**
 * The endpoint to which Ringwire sends news of calls: that of the last run, with a new secret, or a first one. Answers
 * the secret.
 */
async function webhookEndpoint(url) {
  const { webhooks } = ringwire
  const description = 'The call centre'
  const known = (await webhooks.list()).find((endpoint) => endpoint.description === description)
  if (known === undefined) return (await webhooks.create({ url, description, events: steps })).secret
  await webhooks.change(known.id, { url, enabled: true })
  return (await webhooks.rotate(known.id)).secret
}

/** The address that Ringwire asks before a call rings. While nobody answers there, calls ring. Answers the secret. */
async function decideAt(invite_url) {
  return (await ringwire.product.change({ invite_url, invite_failure: 'allow' })).invite_secret
}

/** Resolves with the URL of the service when it listens. It ends with this process. */
function startService() {
  const env = {
    // The same each time: service workers remember it.
    RINGWIRE_PORT: '8090',
    RINGWIRE_VAPID_SUBJECT: 'mailto:calls@example.com',
    ...process.env,
    RINGWIRE_DATA_DIR: data,
    RINGWIRE_BOOTSTRAP_KEYS: `${keyId}:${secret}:callcenter`,
    RINGWIRE_VAPID_PRIVATE_KEY: vapid.privateKey,
    RINGWIRE_VAPID_PUBLIC_KEY: vapid.publicKey,
    // This backend has no name and no TLS: on one machine that may be.
    RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1',
  }
  const child = spawn(here('node_modules/.bin/ringwire'), ['serve'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
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
