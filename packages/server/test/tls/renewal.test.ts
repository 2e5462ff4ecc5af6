import { afterEach, beforeEach, expect, test } from 'bun:test'
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { type Certificates, makeCertificates } from '@ringwire/testkit/certificates'
import { until } from '@ringwire/testkit/patience'
import { productKey, Service } from '@ringwire/testkit/service'
import { SharedStores } from '../support/stores.ts'
import { workersOf } from '../support/workers.ts'

let made: Certificates
let renewed: Certificates
let folder: string
let files: { cert: string; key: string }
let service: Service | undefined
beforeEach(async () => {
  made = await makeCertificates()
  renewed = await makeCertificates()
  folder = mkdtempSync(join(tmpdir(), 'ringwire-tls-'))
  files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
  put(made.server)
})
afterEach(async () => {
  await service?.dispose()
  service = undefined
  for (const each of [made, renewed]) await each.remove()
  rmSync(folder, { recursive: true, force: true })
})

/** As certbot leaves them: one file after the other. */
function put(pair: { cert: string; key: string }): void {
  copyFileSync(pair.cert, files.cert)
  copyFileSync(pair.key, files.key)
}

const env = () => ({ RINGWIRE_TLS_CERT: files.cert, RINGWIRE_TLS_KEY: files.key })

/** Whose certificate a new connection is shown: that of the authority that it is signed by. */
function isShown(url: string, by: Certificates): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), ca: readFileSync(by.ca), servername: 'localhost' })
  socket.on('secureConnect', () => {
    resolve(socket.authorized)
    socket.destroy()
  })
  socket.on('error', () => resolve(false))
  return promise
}

/** An open WebSocket that answers, whatever becomes of the certificate. */
async function openSocket(url: string): Promise<WebSocket> {
  const token = await tokenOf(url)
  const socket = new WebSocket(`${url.replace('https', 'wss')}/v1/ws`, {
    protocols: ['jwt', token],
    tls: { rejectUnauthorized: false },
  } as never)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.onmessage = () => resolve()
  socket.onclose = ({ code }) => reject(new Error(`closed with ${code}`))
  await promise
  return socket
}

async function tokenOf(url: string): Promise<string> {
  const answer = await fetch(`${url}/v1/call/session-token`, {
    method: 'POST',
    keepalive: false,
    tls: { rejectUnauthorized: false },
    headers: { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret },
    body: JSON.stringify({
      ...{ user_id: 'ann', role: 'customer', display_name: 'Ann', allowed_peer_role: 'agent' },
      ...{ context_type: 'order', context_id: '1' },
    }),
  })
  return ((await answer.json()) as { token: string }).token
}

async function answers(socket: WebSocket): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.onmessage = () => resolve()
  socket.onclose = ({ code }) => reject(new Error(`closed with ${code}`))
  socket.send(JSON.stringify({ event: 'test.settle', request_id: 'r', data: {} }))
  await promise
}

test('[TLS1] a renewed certificate is shown to new connections without a word to the service, and sockets stay', async () => {
  service = await new Service(env()).start()
  const { url } = service
  expect(await isShown(url, made)).toBe(true)
  const socket = await openSocket(url)
  put(renewed.server)
  await until('the log says so', () => (service?.log ?? '').includes('new connections get the renewed certificate'))
  expect([await isShown(url, renewed), await isShown(url, made)]).toEqual([true, false])
  await answers(socket)
  socket.close()
  expect(await service.terminate()).toBe(0)
}, 120_000)

test('[TLS1] SIGHUP: a pair that does not fit is logged and the one before is kept; one that fits is shown', async () => {
  service = await new Service(env()).start()
  const { url } = service
  copyFileSync(renewed.server.cert, files.cert)
  service.signal('SIGHUP')
  await until('the log says so', () => (service?.log ?? '').includes('is not the key of the first certificate'))
  expect(await isShown(url, made)).toBe(true)
  copyFileSync(renewed.server.key, files.key)
  service.signal('SIGHUP')
  await until('the log says so', () => (service?.log ?? '').includes('new connections get the renewed certificate'))
  expect(await isShown(url, renewed)).toBe(true)
  // Nothing has changed since, and the service goes on.
  service.signal('SIGHUP')
  await until('the service has looked', () => (service?.log ?? '').includes('the certificate has not changed'))
  expect(await isShown(url, renewed)).toBe(true)
  expect(await service.terminate()).toBe(0)
}, 120_000)

test('[TLS1] SIGHUP does not end a service without TLS', async () => {
  service = await new Service().start()
  service.signal('SIGHUP')
  expect((await fetch(`${service.url}/healthz`, { keepalive: false })).status).toBe(200)
  expect(await service.terminate()).toBe(0)
}, 60_000)

test('[TLS1] SIGHUP to a machine with workers: each of them shows the renewed certificate', async () => {
  const stores = await SharedStores.start()
  try {
    const settings = { ...(await stores.next()), ...env(), RINGWIRE_WORKERS: '2', RINGWIRE_NODE_ID: 'm' }
    service = await new Service(settings).start()
    const workers = workersOf(service.pid)
    const { url } = service
    put(renewed.server)
    service.signal('SIGHUP')
    // Which worker takes a connection is the kernel's choice.
    await until('every worker shows it', async () => {
      const shown = await Promise.all(Array.from({ length: 20 }, () => isShown(url, renewed)))
      return shown.every(Boolean)
    })
    expect(workersOf(service.pid)).toEqual(workers)
    expect(await service.terminate()).toBe(0)
  } finally {
    await service?.dispose()
    await stores.dispose()
  }
}, 120_000)
