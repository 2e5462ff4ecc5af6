import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createBox } from '../cli/command.ts'
import { finish } from '../scenarios/calls/composition.ts'
import type { Client } from '../support/client.ts'
import { ExtendedClient } from '../support/extended-client.ts'
import { about, answeredCall, type ExtendedPair } from '../support/extended-flows.ts'
import { acceptedCall, candidate, connectPair, someone } from '../support/flows.ts'
import { freePort } from '../support/redis.ts'
import { Service } from '../support/service.ts'
import { SharedStores } from '../support/stores.ts'
import { nodeOf, until, workersOf, workersWith } from '../support/workers.ts'

/** One machine that serves with several processes on one port. */
let stores: SharedStores
const count = 3
const nodes = ['m-1', 'm-2', 'm-3']

beforeAll(async () => {
  stores = await SharedStores.start()
})
afterAll(() => stores?.dispose())

async function startWorkers(env: Record<string, string> = {}): Promise<Service> {
  const settings = { ...(await stores.next()), RINGWIRE_NODE_ID: 'm', RINGWIRE_WORKERS: String(count), ...env }
  const service = new Service(settings)
  try {
    return await service.start()
  } catch (error) {
    await service.dispose()
    throw error
  }
}

const nodeOfSession = (service: Service, id: string) => nodeOf(service.env.REDIS_URL ?? '', id)
const linesOf = (service: Service) =>
  service.log
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))

/** Connects until the socket is on this worker: which one takes a connection is the kernel's choice. */
async function on<C extends Client | ExtendedClient>(
  node: string,
  service: Service,
  connect: () => Promise<C>,
  idOf: (client: C) => string,
): Promise<C> {
  for (let tries = 0; tries < 200; tries++) {
    const client = await connect()
    if ((await nodeOfSession(service, idOf(client))) === node) return client
    await (client instanceof ExtendedClient ? client.leave() : client.close())
  }
  throw new Error(`no connection came to ${node}`)
}

function baseOn(node: string, service: Service, userId: string, role: string): Promise<Client> {
  const connect = () => service.connect({ user_id: userId, role })
  return on(node, service, connect, (client) => client.all[0]?.data.socket_id)
}

async function extendedOn(node: string, service: Service, userId: string, role: string): Promise<ExtendedClient> {
  const token = await service.token({ user_id: userId, role })
  const connect = async () => {
    const client = new ExtendedClient({ userId, url: service.url, token, persistent: true })
    await client.connect()
    return client
  }
  return on(node, service, connect, (client) => client.hello?.data.session_id)
}

describe('several workers', () => {
  let service: Service
  beforeAll(async () => {
    service = await startWorkers()
  })
  afterAll(() => service && finish(service))

  test('one line on stdout when all listen, on the port that the first one got; every log line names its node', async () => {
    expect(service.out).toBe(`Ringwire listens on ${service.url}\n`)
    expect([...workersOf(service.pid).keys()].sort()).toEqual([1, 2, 3])
    const listening = linesOf(service).filter(({ message }) => message === 'listening')
    expect(listening.map(({ nodeId }) => nodeId).sort()).toEqual(nodes)
    expect(new Set(listening.map(({ url }) => url))).toEqual(new Set([service.url]))
    expect(linesOf(service).every(({ nodeId }) => ['m', ...nodes].includes(nodeId))).toBe(true)
  })

  test('connections are spread over all of them', async () => {
    const clients: Client[] = []
    for (let i = 0; i < 60; i++) clients.push(await service.connect({ user_id: someone('one') }))
    const holders = await Promise.all(clients.map(({ all }) => nodeOfSession(service, all[0]?.data.socket_id)))
    const shares = nodes.map((node) => holders.filter((holder) => holder === node).length)
    // With 60 connections a share of under 5 has a chance of less than one in 10,000.
    expect(Math.min(...shares)).toBeGreaterThanOrEqual(5)
    expect(shares.reduce((sum, share) => sum + share)).toBe(60)
    await Promise.all(clients.map((client) => client.close()))
  })

  test('a call between clients of different workers, from the invite to the history', async () => {
    const [callerId, calleeId] = [someone('caller'), someone('callee')]
    const caller = await baseOn('m-1', service, callerId, 'customer')
    const callee = await baseOn('m-3', service, calleeId, 'agent')
    const callUuid = await acceptedCall({ caller, callee, calleeId })
    for (let n = 0; n < 20; n++) {
      caller.send('webrtc.ice_candidate', candidate(callUuid, n))
      expect((await callee.next('webrtc.ice_candidate')).data.candidate.candidate).toBe(`candidate:${n}`)
    }
    callee.send('call.end', { call_uuid: callUuid })
    expect((await caller.next('call.ended')).data).toMatchObject({ call_uuid: callUuid, status: 'ended' })
    const { data } = await service.history(await service.token({ user_id: callerId }))
    expect(data).toMatchObject([{ call_uuid: callUuid, status: 'ended', end_reason: 'hangup' }])
  })

  test('the health of whichever worker takes the connection', async () => {
    for (let i = 0; i < 12; i++) {
      expect((await fetch(`${service.url}/readyz`, { keepalive: false })).status).toBe(200)
      expect((await fetch(`${service.url}/healthz`, { keepalive: false })).status).toBe(200)
    }
  })

  test('the port is taken: a second start says so, and does not share it', async () => {
    const box = createBox()
    try {
      const env = { ...(await stores.next()), RINGWIRE_WORKERS: '2', RINGWIRE_PORT: new URL(service.url).port }
      const { code, out, err } = await box.run('serve', { env })
      expect([code, out]).toEqual([1, ''])
      expect(err).toMatch(/^Ringwire did not start on 127\.0\.0\.1:\d+: /m)
    } finally {
      await box.clean()
    }
  })
})

describe('a worker that dies', () => {
  test('its clients come back and their calls go on; it is started again', async () => {
    const service = await startWorkers()
    try {
      const [callerId, calleeId] = [someone('caller'), someone('callee')]
      const pair: ExtendedPair = {
        callerId,
        calleeId,
        caller: await extendedOn('m-2', service, callerId, 'customer'),
        callee: await extendedOn('m-3', service, calleeId, 'agent'),
      }
      const base = await connectPair(service)
      const callUuid = await answeredCall(pair)
      const before = workersOf(service.pid)
      process.kill(before.get(2) ?? 0, 'SIGKILL')
      await pair.caller.closed
      await pair.caller.next('auth.ok', ({ data }) => data.active_calls.length === 1)
      for (let n = 0; n < 10; n++) {
        await pair.caller.request('webrtc.ice_candidate', candidate(callUuid, n))
        await pair.callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate === `candidate:${n}`)
        await pair.callee.request('webrtc.ice_candidate', candidate(callUuid, 100 + n))
        await pair.caller.next(
          'webrtc.ice_candidate',
          ({ data }) => data.candidate.candidate === `candidate:${100 + n}`,
        )
      }
      await until('it listens again', () => linesOf(service).filter(isListening).length === count + 1)
      const after = workersOf(service.pid)
      expect([...after.keys()].sort()).toEqual([1, 2, 3])
      expect([after.get(1), after.get(3)]).toEqual([before.get(1), before.get(3)])
      expect(after.get(2)).not.toBe(before.get(2))
      const died = linesOf(service).filter(({ message }) => message.startsWith('a worker ended'))
      expect(died).toMatchObject([{ nodeId: 'm', node: 'm-2', reason: 'SIGKILL', level: 'error' }])
      // It takes connections again, and clients of it reach those of others.
      await baseOn('m-2', service, someone('late'), 'customer')
      await pair.callee.request('call.end', { call_uuid: callUuid })
      await pair.caller.next('call.ended', about(callUuid))
      pair.caller.stop()
      pair.callee.stop()
      await Promise.all([base.caller.die(), base.callee.die()])
      expect(await service.terminate()).toBe(0)
    } finally {
      await service.dispose()
    }
  }, 60_000)

  test('one that hangs is ended and started again; the others are not', async () => {
    const service = await startWorkers({ RINGWIRE_WORKERS: '2' })
    try {
      const before = workersOf(service.pid)
      process.kill(before.get(2) ?? 0, 'SIGSTOP')
      await until('it listens again', () => linesOf(service).filter(isListening).length === 3, 30_000)
      const after = workersOf(service.pid)
      expect(after.get(1)).toBe(before.get(1) ?? 0)
      expect(after.get(2)).not.toBe(before.get(2))
      expect(linesOf(service).filter(({ level }) => level === 'error')).toMatchObject([
        { node: 'm-2', message: 'a worker gives no sign of life: it is ended' },
        { node: 'm-2', reason: 'SIGKILL' },
      ])
      expect(await service.terminate()).toBe(0)
    } finally {
      await service.dispose()
    }
  }, 60_000)

  test('a process that stood still with its workers judges none of them', async () => {
    const service = await startWorkers({ RINGWIRE_WORKERS: '2' })
    try {
      const before = workersOf(service.pid)
      const all = [service.pid, ...before.values()]
      for (const pid of all) process.kill(pid, 'SIGSTOP')
      // Longer than any of them may be silent.
      await Bun.sleep(11_000)
      for (const pid of all) process.kill(pid, 'SIGCONT')
      const client = await service.connect({ user_id: someone('late'), role: 'customer' })
      // The next looks at them.
      await Bun.sleep(2_500)
      expect(workersOf(service.pid)).toEqual(before)
      client.close()
      expect(await service.terminate()).toBe(0)
    } finally {
      await service.dispose()
    }
  }, 60_000)

  test('again and again: the pauses grow, and the log says so', async () => {
    const service = await startWorkers({ RINGWIRE_WORKERS: '2' })
    try {
      for (let died = 1; died <= 3; died++) {
        process.kill(workersOf(service.pid).get(2) ?? 0, 'SIGKILL')
        await until('it listens again', () => linesOf(service).filter(isListening).length === 2 + died)
      }
      const died = linesOf(service).filter(({ message }) => message.startsWith('a worker ended'))
      expect(died.map(({ attempt, durationMs }) => [attempt, durationMs])).toEqual([
        [1, 250],
        [2, 500],
        [3, 1000],
      ])
      expect(await service.terminate()).toBe(0)
    } finally {
      await service.dispose()
    }
  }, 30_000)
})

const isListening = ({ message }: { message: string }) => message === 'listening'

describe('the end', () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`${signal}: all clients are told 1012, all workers end, exit code 0`, async () => {
      const service = await startWorkers()
      try {
        const clients: Client[] = []
        for (let i = 0; i < 30; i++) clients.push(await service.connect({ user_id: someone('one') }))
        const begin = performance.now()
        service.signal(signal)
        const closes = await Promise.all(clients.map(({ closed }) => closed))
        expect(new Set(closes.map(({ code }) => code))).toEqual(new Set([1012]))
        expect(await service.ended).toBe(0)
        // Nobody serves elsewhere: there is nothing to wait for.
        expect(performance.now() - begin).toBeLessThan(5_000)
        expect(workersWith(service.dataDir)).toEqual([])
        expect(service.log).not.toContain('"level":"error"')
      } finally {
        await service.dispose()
      }
    })
  }

  test('a signal to the whole group, as Ctrl-C sends it, is one signal', async () => {
    const service = await startWorkers()
    try {
      const client = await service.connect({ user_id: someone('one') })
      for (const pid of [...workersOf(service.pid).values(), service.pid]) process.kill(pid, 'SIGINT')
      expect((await client.closed).code).toBe(1012)
      expect(await service.ended).toBe(0)
      expect(service.log).not.toContain('started again')
    } finally {
      await service.dispose()
    }
  })

  test('a second signal ends all at once', async () => {
    const service = await startWorkers()
    try {
      await service.connect({ user_id: someone('one') })
      // A worker that stands still holds the end up.
      process.kill(workersOf(service.pid).get(2) ?? 0, 'SIGSTOP')
      service.signal('SIGTERM')
      await until('it stops', () => service.log.includes('stopping'))
      // Signals of one Ctrl-C come together: only one that comes later is a second one.
      await Bun.sleep(330)
      service.signal('SIGTERM')
      expect(await service.ended).toBe(143)
      await until('all workers are gone', () => workersWith(service.dataDir).length === 0)
    } finally {
      await service.dispose()
    }
  })

  test('kill -9 of the process that started them: they tell their clients and end', async () => {
    const service = await startWorkers()
    try {
      const clients: Client[] = []
      for (let i = 0; i < 12; i++) clients.push(await service.connect({ user_id: someone('one') }))
      await service.kill()
      const closes = await Promise.all(clients.map(({ closed }) => closed))
      expect(new Set(closes.map(({ code }) => code))).toEqual(new Set([1012]))
      await until('all workers are gone', () => workersWith(service.dataDir).length === 0)
      // The port is free: it can be started again at once.
      await service.start()
      const client = await service.connect({ user_id: someone('one') })
      await client.close()
      expect(await service.terminate()).toBe(0)
    } finally {
      await service.dispose()
    }
  })
})

describe('the start', () => {
  test('without Redis it is refused with one line', async () => {
    const box = createBox()
    try {
      const line = 'RINGWIRE_WORKERS over 1 needs REDIS_URL and DATABASE_URL: each worker is a node\n'
      for (const [args, env] of [
        ['serve --workers 2', {}],
        ['serve', { RINGWIRE_WORKERS: '2' }],
        ['serve', { RINGWIRE_WORKERS: '2', DATABASE_URL: stores.postgres.url() }],
      ] as const) {
        expect(await box.run(args, { env })).toEqual({ code: 1, out: '', err: line })
      }
    } finally {
      await box.clean()
    }
  })

  test('--workers counts more than RINGWIRE_WORKERS; one worker is no other process', async () => {
    const box = createBox()
    try {
      const env = { ...(await stores.next()), RINGWIRE_PORT: String(await freePort()) }
      const two = await box.serve({ args: ['serve', '--workers', '2'], env: { ...env, RINGWIRE_WORKERS: '3' } })
      expect([...workersOf(two.pid).keys()].sort()).toEqual([1, 2])
      expect(two.url).toBe(`http://127.0.0.1:${env.RINGWIRE_PORT}`)
      two.signal('SIGTERM')
      expect((await two.ended).code).toBe(0)
      const one = await box.serve({ args: ['serve', '--workers', '1'], env })
      expect(workersOf(one.pid).size).toBe(0)
      one.signal('SIGTERM')
      expect((await one.ended).code).toBe(0)
    } finally {
      await box.clean()
    }
  })

  test('a database that cannot be used: 1, one line of the first worker, and nothing stays', async () => {
    const box = createBox()
    try {
      const env = {
        ...(await stores.next()),
        RINGWIRE_WORKERS: '3',
        DATABASE_URL: stores.postgres.url('there_is_none'),
      }
      const { code, out, err } = await box.run('serve', { env })
      expect([code, out]).toEqual([1, ''])
      expect(err.match(/^Ringwire did not start on /gm)).toHaveLength(1)
      expect(workersWith(box.dataDir)).toEqual([])
    } finally {
      await box.clean()
    }
  })

  test('many nodes at once on an empty database: one brings the schema, all have the keys', async () => {
    const shared = await stores.next()
    const all = Array.from({ length: 4 }, () => new Service({ ...shared, RINGWIRE_WORKERS: '1' }))
    try {
      await Promise.all(all.map((service) => service.start()))
      for (const service of all) expect(await service.token({ user_id: someone('one') })).toStartWith('ey')
    } finally {
      await Promise.all(all.map((service) => service.dispose()))
    }
  })
})
