import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type Certificates, makeCertificates } from '@ringwire/testkit/certificates'
import { freePort } from '@ringwire/testkit/ports'
import { openReady } from '../../src/ports/sessions.fixture.ts'
import { createStore } from '../../src/stores/redis/connection.ts'
import { numbersOf, relays, resumeWindowMs, upTo, windowMs } from '../contracts/session-parts.ts'
import { type RedisServer, startCluster, startRedis } from '../support/redis.ts'
import { createRedisSessions } from '../support/redis-sessions.ts'

let certificates: Certificates
let server: RedisServer
let port: number
beforeAll(async () => {
  certificates = await makeCertificates()
  const { ca, server: own } = certificates
  server = await startRedis(async () => {
    port = await freePort()
    return [
      ...['--tls-port', String(port), '--tls-cert-file', own.cert, '--tls-key-file', own.key],
      ...['--tls-ca-cert-file', ca, '--tls-auth-clients', 'yes'],
    ]
  })
})
afterAll(async () => {
  await server.stop()
  await certificates.remove()
})

const clientFiles = () => `cert=${certificates.client.cert}&key=${certificates.client.key}`
const urlOf = (query: string) => `rediss://127.0.0.1:${port}?${query}`

/** What the start says; the empty text where it begins. */
async function startOf(url: string, startMs = 2_500): Promise<string> {
  const store = createStore(url, () => {}, { startMs })
  try {
    await store.ready()
    await store.tryWrite()
    return ''
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  } finally {
    store.close()
  }
}

test('TLS with an authority of one’s own: sessions go through it', async () => {
  const heard: unknown[] = []
  const node = createRedisSessions({
    ...{ url: urlOf(`ca=${certificates.ca}&${clientFiles()}`), node: 'one', windowMs, resumeWindowMs },

    onError: (error) => void heard.push(error),
  })
  await node.start()
  const seen = await openReady(node.sessions)
  await relays(node.sessions, seen.id, 'c', upTo(20))
  await node.settled()
  expect(numbersOf(seen.socket)).toEqual(upTo(20))
  await node.close()
  expect(heard).toEqual([])
})

test('a certificate of another name is refused', async () => {
  // Signed by the same authority, for client.test.
  const { ca, client } = certificates
  let tlsPort = 0
  const files = ['--tls-cert-file', client.cert, '--tls-key-file', client.key, '--tls-ca-cert-file', ca]
  const other = await startRedis(async () => {
    tlsPort = await freePort()
    return ['--tls-port', String(tlsPort), '--tls-auth-clients', 'no', ...files]
  })
  try {
    expect(await startOf(`rediss://127.0.0.1:${tlsPort}?ca=${ca}`)).toMatch(/^Redis cannot be reached: .*altnames/)
  } finally {
    await other.stop()
  }
})

test('what is not signed by an authority that is believed is refused, and so is who shows no certificate', async () => {
  const untrusted = /^Redis cannot be reached: self signed certificate in certificate chain$/
  expect(await startOf(urlOf(clientFiles()))).toMatch(untrusted)
  expect(await startOf(urlOf(`ca=${certificates.otherCa}&${clientFiles()}`))).toMatch(untrusted)
  expect(await startOf(urlOf(`ca=${certificates.ca}`))).toMatch(/^Redis cannot be reached: .*CERTIFICATE_REQUIRED/)
  expect(await startOf(`redis://127.0.0.1:${port}`)).toMatch(/^Redis cannot be reached: /)
})

test('where one side alone speaks TLS, the start says what the URL would be', async () => {
  const plain = await startRedis()
  try {
    const silent = /^Redis cannot be reached: .*\(if it speaks no TLS, the URL begins with redis, not rediss\)$/
    const started = ['rediss', 'rediss+cluster'].map((scheme) => startOf(`${scheme}://127.0.0.1:${plain.port}`, 4_500))
    for (const said of await Promise.all(started)) expect(said).toMatch(silent)
    const hangsUp = /^Redis cannot be reached: .*\(if it speaks TLS, the URL begins with rediss, not redis\)$/
    expect(await startOf(`redis://127.0.0.1:${port}`)).toMatch(hangsUp)
    // Nobody serves at this port; one that was free just now may be somebody's by then.
    expect(await startOf('redis://127.0.0.1:1')).toMatch(/ECONNREFUSED [\d.:]+$/)
  } finally {
    await plain.stop()
  }
}, 240_000)

test('a cluster with TLS', async () => {
  const { ca, server: own } = certificates
  const files = ['--tls-cert-file', own.cert, '--tls-key-file', own.key, '--tls-ca-cert-file', ca]
  const ports: number[] = []
  const cluster = await startCluster(async () => {
    const tlsPort = await freePort()
    ports.push(tlsPort)
    return ['--tls-port', String(tlsPort), '--tls-cluster', 'yes', '--tls-auth-clients', 'no', ...files]
  })
  try {
    const hosts = ports.map((each) => `127.0.0.1:${each}`)
    expect(await startOf(`rediss+cluster://${hosts.join(',')}?ca=${ca}`)).toBe('')
    expect(await startOf(`rediss+cluster://${hosts.join(',')}`)).toMatch(/^Redis cannot be reached: /)
  } finally {
    await cluster.stop()
  }
}, 240_000)

test('a file that is not there is named', () => {
  expect(() => createStore(urlOf('ca=/nowhere/ca.pem'), () => {})).toThrow('/nowhere/ca.pem')
})

test('NODE_EXTRA_CA_CERTS does the same as ca', async () => {
  const script = `
    import { createStore } from ${JSON.stringify(join(import.meta.dir, '../../src/stores/redis/connection.ts'))}
    const store = createStore(${JSON.stringify(urlOf(clientFiles()))}, () => {}, { startMs: 2_000 })
    console.log(await store.ready().then(() => 'ready', (error) => error.message))
    store.close()`
  const outcome = async (env: Record<string, string>) => {
    const child = Bun.spawn([process.execPath, '-e', script], { env: { ...process.env, ...env }, stderr: 'inherit' })
    return (await new Response(child.stdout).text()).trim()
  }
  expect(await outcome({ NODE_EXTRA_CA_CERTS: certificates.ca })).toBe('ready')
  expect(await outcome({})).toMatch(/^Redis cannot be reached: self signed certificate/)
})
