import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { soon, until } from '@ringwire/testkit/patience'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import type { Ephemerals } from '../../src/cluster/ephemerals.port.ts'
import { createPostgresEphemerals } from '../../src/stores/postgres/ephemerals.ts'
import { createStore } from '../../src/stores/redis/connection.ts'
import { createRedisEphemerals } from '../../src/stores/redis/ephemerals.ts'

export interface EphemeralsHarness {
  readonly kind: 'redis' | 'postgres'
  readonly url: string
  readonly prefix?: string
  /** The same by way of a proxy. A cluster names its own addresses. */
  readonly proxied?: (proxy: TcpProxy) => string
  close(): Promise<void>
}

interface Opened {
  readonly ephemerals: Ephemerals
  close(): Promise<void>
}

/** What one process has of a store, as `backend.ts` opens it. */
export async function openEphemerals(kind: EphemeralsHarness['kind'], url: string, prefix = ''): Promise<Opened> {
  const onError = (error: unknown) => console.error(error)
  if (kind === 'postgres') {
    const ephemerals = createPostgresEphemerals(url, 'test')
    return { ephemerals, close: ephemerals.close }
  }
  // The one who cuts the connections knows it.
  const store = createStore(url, () => {}, { prefix })
  await store.ready()
  const ephemerals = createRedisEphemerals({ url, store, onError: () => {} })
  const close = async () => {
    await ephemerals.close().catch(onError)
    store.close()
  }
  return { ephemerals, close }
}

/** A node that holds its sign, and what it hears of it. */
export async function holder(opened: Opened, node: string): Promise<string[]> {
  const heard: string[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  opened.ephemerals.hold(node, {
    onHeld() {
      heard.push('held')
      resolve()
    },
    onLost: () => void heard.push('lost'),
  })
  await promise
  return heard
}

export const newNode = (id: string) => `${id}~${crypto.randomUUID()}`
/** A process that is killed has lost its sign by then, in ms. */
const goneMs = 500

/** What `Ephemerals` promises, of a real server and with real processes. */
export function registerEphemeralsContract(
  name: string,
  open: () => Promise<EphemeralsHarness>,
  isCluster = false,
): void {
  describe(`signs of life: ${name}`, () => {
    let harness: EphemeralsHarness
    let opened: Opened[] = []
    beforeAll(async () => {
      harness = await open()
    }, 240_000)
    afterEach(async () => {
      await Promise.all(opened.map((each) => each.close()))
      opened = []
    })
    afterAll(() => harness?.close())

    async function connect(url = harness.url): Promise<Opened> {
      const one = await openEphemerals(harness.kind, url, harness.prefix)
      opened.push(one)
      return one
    }

    /** One that looks, as every node does: it holds a sign, too. */
    async function watcher() {
      const one = await connect()
      await holder(one, newNode('watcher'))
      return async (...nodes: string[]) => [...(await one.ephemerals.look(nodes)).held]
    }

    test('a node has its sign as long as it holds it, and others are not taken for it', async () => {
      const look = await watcher()
      const [one, other, longer] = [newNode('one'), newNode('other'), '']
      expect(await look(one, other, `${one}1`, longer)).toEqual([])
      const holding = await connect()
      const heard = await holder(holding, one)
      expect(await look(other, one, `${one}1`, longer)).toEqual([one])
      const own = await holding.ephemerals.look([one])
      expect([...own.held]).toEqual([one])
      await holding.close()
      await until('the sign is gone', async () => (await look(one)).length === 0)
      expect(heard).toEqual(['held'])
    }, 60_000)

    test('all see the same server', async () => {
      const [one, other] = [await connect(), await connect()]
      await Promise.all([holder(one, newNode('one')), holder(other, newNode('other'))])
      const looks = await Promise.all([one, other, one].map(({ ephemerals }) => ephemerals.look([])))
      const [{ origin } = { origin: '' }] = looks
      expect(origin).not.toBe('')
      expect(looks.map((each) => each.origin)).toEqual([origin, origin, origin])
    }, 60_000)

    test('a process that is killed loses its sign at once; one that stands still keeps it', async () => {
      const look = await watcher()
      const node = newNode('child')
      const script = new URL('ephemerals-child.ts', import.meta.url).pathname
      const command = [process.execPath, script, harness.kind, harness.url, harness.prefix ?? '', node]
      const child = Bun.spawn(command, { stdout: 'pipe', stderr: 'inherit' })
      try {
        await child.stdout.getReader().read()
        expect(await look(node)).toEqual([node])
        child.kill('SIGSTOP')
        expect(await look(node)).toEqual([node])
        child.kill('SIGKILL')
        const since = performance.now()
        await until('the sign is gone', async () => (await look(node)).length === 0)
        expect(performance.now() - since).toBeLessThan(soon(goneMs))
      } finally {
        child.kill('SIGKILL')
        await child.exited
      }
    }, 60_000)

    // Its servers name each other, and no proxy.
    if (isCluster) return
    test('a connection that breaks takes the sign along, and another one takes it again', async () => {
      const { proxied = () => harness.url } = harness
      const proxy = await new TcpProxy(harness.url).start()
      try {
        const look = await watcher()
        const node = newNode('cut')
        const heard = await holder(await connect(proxied(proxy)), node)
        proxy.refuse()
        await until('it is gone', async () => (await look(node)).length === 0)
        await until('its node knows that', () => heard.length === 2)
        proxy.mend()
        await until('it is back', async () => (await look(node)).length === 1)
        await until('its node knows that, too', () => heard.length === 3)
        proxy.cut('close')
        await until('it was lost and taken again', () => heard.length === 5)
        expect(await look(node)).toEqual([node])
        expect(heard).toEqual(['held', 'lost', 'held', 'lost', 'held'])
      } finally {
        await proxy.stop()
      }
    }, 60_000)
  })
}
