import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Client } from '@ringwire/testkit/client'
import { acceptedCall, candidate, someone } from '@ringwire/testkit/flows'
import { soon, until } from '@ringwire/testkit/patience'
import { freePort } from '@ringwire/testkit/ports'
import { Service } from '@ringwire/testkit/service'
import { Redis } from 'ioredis'
import { createBox } from '../cli/command.ts'
import { finish } from '../scenarios/calls/composition.ts'
import { workersOf, workersWith } from '../support/workers.ts'
import { baseOn, linesOf, machinesFor, nodeOfSession, nodes } from './machine.ts'

const { stores, startWorkers } = machinesFor()

describe('several workers', () => {
  let service: Service
  beforeAll(async () => {
    service = await startWorkers()
  })
  afterAll(() => service && finish(service))

  test('one line on stdout when all listen, on the port that the first one got; every log line names its node', async () => {
    expect(service.out).toBe(`Ringwire listens on ${service.url}\n`)
    expect([...workersOf(service.pid).keys()].sort()).toEqual([1, 2, 3])
    const said = () => linesOf(service).filter(({ message }) => message === 'listening')
    // Their lines come on another pipe than the one on stdout.
    await until('all have said so', () => said().length >= nodes.length)
    const listening = said()
    expect(listening.map(({ nodeId }) => nodeId).sort()).toEqual(nodes)
    expect(new Set(listening.map(({ url }) => url))).toEqual(new Set([service.url]))
    expect(linesOf(service).every(({ nodeId }) => ['m', ...nodes].includes(nodeId))).toBe(true)
  })

  test('both stores show whose connection each is', async () => {
    const names = nodes.map((node) => `ringwire:${node}`)
    const { DATABASE_URL = '', REDIS_URL = '' } = service.env
    // A worker of autovacuum may be at this database, too.
    const rows = await stores().postgres.query(
      `SELECT DISTINCT application_name AS name FROM pg_stat_activity
       WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`,
      DATABASE_URL,
    )
    expect(rows.map(({ name }) => name).sort()).toEqual(names)
    const redis = new Redis(REDIS_URL)
    // Each has one connection for what it asks, one on which it listens, and one that shows that it lives.
    const list = String(await redis.client('LIST')).split('\n')
    redis.disconnect()
    // Other tests have nodes of these names on other databases of the server.
    const isOurs = (line: string) => line.includes(` db=${new URL(REDIS_URL).pathname.slice(1)} `)
    for (const name of names)
      expect(list.filter((line) => isOurs(line) && line.includes(` name=${name} `))).toHaveLength(3)
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
    const dozen = async (path: string) => {
      const statuses: number[] = []
      for (let i = 0; i < 12; i++) statuses.push((await fetch(`${service.url}${path}`, { keepalive: false })).status)
      return statuses
    }
    expect(new Set(await dozen('/healthz'))).toEqual(new Set([200]))
    // A try that takes longer than 1 s counts as none.
    await until('a dozen in a row are ready', async () => (await dozen('/readyz')).every((status) => status === 200))
  })

  test('the port is taken: a second start says so, and does not share it', async () => {
    const box = createBox()
    try {
      const env = { ...(await stores().next()), RINGWIRE_WORKERS: '2', RINGWIRE_PORT: new URL(service.url).port }
      const { code, out, err } = await box.run('serve', { env })
      expect([code, out]).toEqual([1, ''])
      expect(err).toMatch(
        /^Ringwire did not start on 127\.0\.0\.1:(\d+): port \1 is in use[^\n]*RINGWIRE_PORT[^\n]*\n$/,
      )
    } finally {
      await box.clean()
    }
  })
})

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
        expect(performance.now() - begin).toBeLessThan(soon(5_000))
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
        ['serve', { RINGWIRE_WORKERS: '2', DATABASE_URL: stores().postgres.url() }],
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
      const env = { ...(await stores().next()), RINGWIRE_PORT: String(await freePort()) }
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

  test('an address that this machine does not have is told as by one process', async () => {
    const box = createBox()
    try {
      const env = { ...(await stores().next()), RINGWIRE_HOST: '192.0.2.1', RINGWIRE_PORT: '18080' }
      const line =
        'Ringwire did not start on 192.0.2.1:18080: 192.0.2.1 is not an address of this machine. Set RINGWIRE_HOST to one, or to 0.0.0.0 for all.\n'
      for (const command of ['serve', 'serve --workers 2']) {
        const { code, out, err } = await box.run(command, { env: { ...env, RINGWIRE_LOG_LEVEL: 'silent' } })
        expect([command, code, out, err]).toEqual([command, 1, '', line])
      }
    } finally {
      await box.clean()
    }
  })

  test('a database that cannot be used: 1, one line of the first worker, and nothing stays', async () => {
    const box = createBox()
    try {
      const env = {
        ...(await stores().next()),
        RINGWIRE_WORKERS: '3',
        DATABASE_URL: stores().postgres.url('there_is_none'),
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
    const shared = await stores().next()
    const all = Array.from({ length: 4 }, () => new Service({ ...shared, RINGWIRE_WORKERS: '1' }))
    try {
      await Promise.all(all.map((service) => service.start()))
      for (const service of all) expect(await service.token({ user_id: someone('one') })).toStartWith('ey')
    } finally {
      await Promise.all(all.map((service) => service.dispose()))
    }
  })
})
