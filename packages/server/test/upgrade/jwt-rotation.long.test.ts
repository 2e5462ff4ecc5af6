import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@ringwire/testkit/client'
import { someone } from '@ringwire/testkit/flows'
import { Service } from '@ringwire/testkit/service'
import { makeSigningKey } from '../../src/config/signing-key.ts'
import { clockMs } from '../support/clocks.ts'
import { type Databases, openDatabases } from '../support/postgres.ts'
import { openRedisDatabases, type RedisDatabases } from '../support/redis.ts'

const old = `k1:${'A'.repeat(43)}`
const fresh = `k2:${'B'.repeat(43)}`
/** The order of docs/operations.md: known everywhere before it signs anywhere, and gone after the last token. */
const added = `${old},${fresh}`
const promoted = `${fresh},${old}`
const ttlMs = 4_000

let databases: Databases
let redis: RedisDatabases
let nodes: Service[] = []
beforeAll(async () => {
  ;[databases, redis] = await Promise.all([openDatabases(), openRedisDatabases()])
  const [databaseUrl, redisUrl] = await Promise.all([databases.database(), redis.database()])
  const node = (name: string) =>
    new Service({
      DATABASE_URL: databaseUrl,
      REDIS_URL: redisUrl,
      RINGWIRE_NODE_ID: name,
      RINGWIRE_JWT_SECRETS: old,
      RINGWIRE_TOKEN_TTL_S: String(ttlMs / 1000),
      RINGWIRE_DRAIN_MS: '200',
    })
  nodes = ['one', 'two', 'three'].map(node)
  await Promise.all(nodes.map((each) => each.start()))
}, 240_000)
afterAll(async () => {
  await Promise.all(nodes.map((node) => node.dispose()))
  await Promise.all([databases.dispose(), redis.stop()])
})

/** How it closed; `over` if the token had ended by then: a client that came late with it is rightly refused. */
async function closeOf(client: Client, issued: { readonly expires_at: string }): Promise<number | 'over'> {
  const { code } = await client.closed
  return code === 4401 && Date.now() >= Date.parse(issued.expires_at) - clockMs ? 'over' : code
}

/** People who ask any node for a token and show it to any other, again and again, and stay a while; the codes of their closes. */
function comeAndGo(count: number) {
  const up = new Set(nodes)
  const codes = new Map<number | string, number>()
  const note = (code: number | string) => codes.set(code, (codes.get(code) ?? 0) + 1)
  const anyNode = () => [...up][Math.floor(Math.random() * up.size)] as Service
  let isOver = false

  async function one(): Promise<void> {
    const user_id = someone('ann')
    while (!isOver) {
      const issued = await anyNode()
        .issue({ user_id, role: 'agent' })
        .catch(() => undefined)
      if (issued === undefined) continue
      // The same token at several nodes, and well before its end.
      for (let visit = 0; visit < 3 && !isOver; visit++) {
        const client = new Client({ url: anyNode().url, token: issued.token })
        const stay = Bun.sleep(300).then(() => client.close())
        note(await closeOf(client, issued))
        await stay
        if (client.events()[0] === 'auth.ok') note('in')
      }
    }
  }
  const work = Promise.all(Array.from({ length: count }, one))
  return {
    up,
    codes,
    async stop() {
      isOver = true
      await work
    },
  }
}

/** One node after another is stopped and comes back with these keys. */
async function roll(up: Set<Service>, keys: string): Promise<void> {
  for (const node of nodes) {
    up.delete(node)
    await node.terminate()
    await node.start({ RINGWIRE_JWT_SECRETS: keys })
    up.add(node)
  }
}

const headerOf = (token: string): { alg: string; kid: string } =>
  JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString())
const late = async (node: Service) => (await node.issue({ user_id: someone('late'), role: 'agent' })).token

test('[TOK2] [TOK5] a new key is added, promoted and the old one removed, node by node, and nobody gets 4401', async () => {
  const people = comeAndGo(12)
  await roll(people.up, added)
  await roll(people.up, promoted)
  const lastOld = Bun.sleep(ttlMs)
  expect(headerOf(await late(nodes[0]!)).kid).toBe('k2')
  await lastOld
  await roll(people.up, fresh)
  await people.stop()
  expect(people.codes.get('in')).toBeGreaterThan(50)
  expect(people.codes.get(4401)).toBeUndefined()
}, 240_000)

/** Somebody who stays: whatever closes the socket, the same token is shown to another node until it is nearly over. */
async function stay(up: ReadonlySet<Service>, seen: Set<number | string>, isOver: () => boolean): Promise<void> {
  const anyNode = () => [...up][Math.floor(Math.random() * up.size)] as Service
  while (!isOver()) {
    const issued = await anyNode()
      .issue({ user_id: someone('ben'), role: 'agent' })
      .catch(() => undefined)
    if (issued === undefined) continue
    seen.add(headerOf(issued.token).alg)
    const until = Date.parse(issued.expires_at) - 1000
    while (Date.now() < until && !isOver()) {
      const client = new Client({ url: anyNode().url, token: issued.token })
      const leaving = setTimeout(() => client.close(), until - Date.now())
      seen.add(await closeOf(client, issued))
      clearTimeout(leaving)
    }
  }
}

/** What each node says of the keys: `kid alg`. */
async function published(): Promise<string[]> {
  const documents = await Promise.all(nodes.map(async ({ url }) => (await fetch(`${url}${jwksPath}`)).json()))
  return documents.map(({ keys }) => keys.map(({ kid, alg }: Record<string, string>) => `${kid} ${alg}`).join())
}
const jwksPath = '/.well-known/jwks.json'

/** Whether a token is good for a reader who has nothing but the document of a node. */
async function isGoodFor(node: Service, token: string): Promise<boolean> {
  const { keys } = await (await fetch(`${node.url}${jwksPath}`)).json()
  const [head = '', body = '', signature = ''] = token.split('.')
  const jwk = keys.find(({ kid }: { kid: string }) => kid === headerOf(token).kid)
  const key = await crypto.subtle.importKey('jwk', jwk, 'Ed25519', false, ['verify'])
  return crypto.subtle.verify('Ed25519', key, Buffer.from(signature, 'base64url'), Buffer.from(`${head}.${body}`))
}

test('[KEY1] from a secret to a private key, node by node, and nobody is sent away', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'ringwire-rotation-'))
  const file = join(dir, 'k3.pem')
  writeFileSync(file, makeSigningKey('EdDSA'), { mode: 0o600 })
  const key = `k3:file:${file}`
  const people = comeAndGo(6)
  const seen = new Set<number | string>()
  let isOver = false
  const staying = Promise.all(Array.from({ length: 6 }, () => stay(people.up, seen, () => isOver)))
  try {
    expect(await published()).toEqual(['', '', ''])
    await roll(people.up, `${fresh},${key}`)
    expect(await published()).toEqual(['k3 EdDSA', 'k3 EdDSA', 'k3 EdDSA'])
    expect(headerOf(await late(nodes[1]!))).toMatchObject({ alg: 'HS256', kid: 'k2' })
    expect([...seen]).not.toContain('EdDSA')
    await roll(people.up, `${key},${fresh}`)
    const lastOld = Bun.sleep(ttlMs)
    const token = await late(nodes[1]!)
    expect(headerOf(token)).toMatchObject({ alg: 'EdDSA', kid: 'k3' })
    expect(await Promise.all(nodes.map((node) => isGoodFor(node, token)))).toEqual([true, true, true])
    await lastOld
    await roll(people.up, key)
    expect(await published()).toEqual(['k3 EdDSA', 'k3 EdDSA', 'k3 EdDSA'])
  } finally {
    isOver = true
    await Promise.all([people.stop(), staying])
    rmSync(dir, { recursive: true, force: true })
  }
  expect(people.codes.get('in')).toBeGreaterThan(25)
  expect(people.codes.get(4401)).toBeUndefined()
  expect([...seen]).toContain('HS256')
  expect([...seen]).toContain('EdDSA')
  // Sockets of nodes that stopped were closed, and their people were let in elsewhere.
  expect([...seen]).toContain(1012)
  expect([...seen]).not.toContain(4401)
}, 240_000)
