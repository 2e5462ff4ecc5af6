import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ServerWebSocket } from 'bun'
import { makeCertificate } from '../certificate.ts'
import { findPeers } from '../peers.ts'
import { startSystem } from '../systems.ts'
import { prepareRelay } from './relay.ts'

type Socket = ServerWebSocket<{ id: string }>

/** The protocol of peers/bare-bun.ts, with a chance to misbehave: `deliver` sends a message as often as it likes. */
function relay(deliver: (peer: Socket, text: string, number: number, sender: Socket) => void) {
  const clients = new Map<string, Socket>()
  let number = 0
  return Bun.serve<{ id: string }>({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request, server) {
      const id = new URL(request.url).searchParams.get('id') ?? ''
      return server.upgrade(request, { data: { id } }) ? undefined : new Response(null, { status: 426 })
    },
    websocket: {
      open: (socket) => void clients.set(socket.data.id, socket),
      message(socket, text) {
        const message = JSON.parse(String(text))
        message.from = socket.data.id
        deliver(clients.get(message.to)!, JSON.stringify(message), ++number, socket)
      },
    },
  })
}

async function load(port: number, window: number, measureMs = 50) {
  const target = { system: 'bare', port, pid: process.pid, core: null } as const
  const prepared = await prepareRelay({ kind: 'relay', target, pairs: 3, firstPair: 0 })
  try {
    return await prepared.run({ window, warmupMs: 10, measureMs })
  } finally {
    await prepared.release()
  }
}

describe('a server', () => {
  test.each(['ringwire', 'extended', 'acknowledged', ...findPeers().here] as const)(
    '%s: every message arrives, in order',
    async (system) => {
      const directory = mkdtempSync(join(tmpdir(), 'ringwire-test-'))
      const server = await startSystem(system, null, directory)
      try {
        const target = { system, port: server.port, pid: server.pid, core: null } as const
        const prepared = await prepareRelay({ kind: 'relay', target, pairs: 2, firstPair: 0 })
        // The numbers of an extended client get longer twice until then.
        for (let sent = 0; sent <= 4 * 100; ) {
          const result = await prepared.run({ window: 16, warmupMs: 10, measureMs: 300 })
          expect(result.sent).toBeGreaterThan(0)
          expect(result.received).toBe(result.sent)
          sent += result.sent
        }
        await prepared.release()
      } finally {
        await server.stop()
        rmSync(directory, { recursive: true, force: true })
      }
    },
    240_000,
  )
})

test('over TLS, each at its time: every message arrives, and its latency is known', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'ringwire-test-'))
  const { cert, key } = makeCertificate(directory)
  const settings = { RINGWIRE_TLS_CERT: cert, RINGWIRE_TLS_KEY: key }
  const server = await startSystem('secure', null, directory, { settings })
  try {
    const target = { system: 'secure', port: server.port, pid: server.pid, core: null } as const
    const prepared = await prepareRelay({ kind: 'relay', target, pairs: 2, firstPair: 0 })
    const shape = { window: 0, warmupMs: 100, measureMs: 400, perSecond: 1000 }
    const { sent, received, latencies, lateness } = await prepared.run(shape)
    // The messages of the warm-up are sent, too, but not recorded.
    expect([sent, received]).toEqual([500, 500])
    for (const counts of [latencies, lateness!]) expect(counts.reduce((a, b) => a + b, 0)).toBe(400)
    await prepared.release()
  } finally {
    await server.stop()
    rmSync(directory, { recursive: true, force: true })
  }
})

test('a message that the service refuses is an error at once, with what it said', async () => {
  using server = relay((_peer, _text, _number, sender) => void sender.send('{"event":"call.error"}'))
  const target = { system: 'bare', port: server.port!, pid: process.pid, core: null } as const
  await expect(prepareRelay({ kind: 'relay', target, pairs: 1, firstPair: 0 })).rejects.toThrow('was refused')
})

describe('counting', () => {
  test.each([1, 2, 16])('with %i in flight every message that was sent is received', async (window) => {
    let delivered = 0
    using server = relay((peer, text) => {
      delivered++
      peer.send(text)
    })
    const result = await load(server.port!, window)
    expect(result.received).toBe(result.sent)
    // One more each way per pair: the first message, which is read as a whole.
    expect(result.sent).toBe(delivered - 6)
    expect(result.count).toBeGreaterThan(0)
    expect(result.count).toBeLessThanOrEqual(result.received)
    expect(result.latencies.length > 0).toBe(window === 1)
  })

  test('a slice in which nothing came lasts until something came', async () => {
    // More than the warm-up and the slice: the first six are read as a whole, before them.
    using server = relay((peer, text, number) => {
      if (number <= 6) peer.send(text)
      else setTimeout(() => peer.send(text), 400)
    })
    const result = await load(server.port!, 2)
    expect(result.count).toBeGreaterThan(0)
    expect(result.load.seconds).toBeGreaterThan(0.1)
  })

  test('a lost message is an error', async () => {
    using server = relay((peer, text, number) => {
      if (number !== 50) peer.send(text)
    })
    await expect(load(server.port!, 16)).rejects.toThrow('1 messages were lost')
  }, 240_000)

  test('a message that comes twice is an error', async () => {
    using server = relay((peer, text, number) => {
      peer.send(text)
      if (number === 50) peer.send(text)
    })
    await expect(load(server.port!, 16)).rejects.toThrow('twice')
  })

  test('other bytes than were sent are an error', async () => {
    using server = relay((peer, text, number) => {
      peer.send(number > 6 ? text.replace('srflx', 'xxxxx') : text)
    })
    await expect(load(server.port!, 16)).rejects.toThrow('other bytes')
  })

  test('an answer that is no candidate is an error', async () => {
    using server = relay((peer, text, number) => {
      peer.send(number === 50 ? '{"event":"call.error"}' : text)
    })
    await expect(load(server.port!, 16)).rejects.toThrow('call.error')
  }, 240_000)
})
