import { expect, test } from 'bun:test'
import { compareSamples, readSample, watchFlow } from './stats.ts'

type Entry = Record<string, unknown> & { id: string }

const report = (...entries: Entry[]): [string, unknown][] => entries.map((entry) => [entry.id, entry])

const at = (timestamp: number, packets: number, bytes: number, lost: number) =>
  readSample(
    report(
      {
        id: 'in-a',
        type: 'inbound-rtp',
        kind: 'audio',
        timestamp,
        packetsReceived: packets,
        bytesReceived: bytes,
        packetsLost: lost,
        audioLevel: 0.25,
        jitter: timestamp / 1_000_000,
        codecId: 'opus',
      },
      {
        id: 'in-v',
        type: 'inbound-rtp',
        kind: 'video',
        timestamp,
        packetsReceived: 0,
        bytesReceived: 0,
        packetsLost: 0,
        frameWidth: 640,
        frameHeight: 480,
        framesPerSecond: 30,
        framesDropped: packets / 10,
        jitter: 0.0005,
        codecId: 'vp8',
      },
      { id: 'opus', type: 'codec', timestamp, mimeType: 'audio/opus' },
      { id: 'vp8', type: 'codec', timestamp, mimeType: 'video/VP8' },
      { id: 'out-a', type: 'outbound-rtp', kind: 'audio', timestamp, packetsSent: packets * 2, bytesSent: bytes * 2 },
      { id: 'remote-a', type: 'remote-inbound-rtp', kind: 'audio', timestamp, packetsLost: lost * 2 },
      { id: 't', type: 'transport', timestamp, selectedCandidatePairId: 'p' },
      {
        id: 'p',
        type: 'candidate-pair',
        timestamp,
        currentRoundTripTime: 0.042,
        localCandidateId: 'l',
        remoteCandidateId: 'r',
      },
      { id: 'l', type: 'local-candidate', timestamp, candidateType: 'host' },
      { id: 'r', type: 'remote-candidate', timestamp, candidateType: 'relay' },
    ),
  )

test('rates and loss are those of the interval', () => {
  const stats = compareSamples(at(1000, 100, 10_000, 5), at(3000, 190, 30_000, 15))
  expect(stats).toEqual({
    intervalMs: 2000,
    roundTripMs: 42,
    path: 'relay',
    inbound: {
      audio: { bitsPerSecond: 80_000, packets: 90, loss: 0.1 },
      video: { bitsPerSecond: 0, packets: 0, loss: undefined },
    },
    outbound: {
      audio: { bitsPerSecond: 160_000, packets: 180, loss: 20 / 180 },
      video: { bitsPerSecond: 0, packets: 0, loss: undefined },
    },
    audioLevel: 0.25,
    picture: { width: 640, height: 480, framesPerSecond: 30 },
    jitterMs: 3,
    framesDropped: 9,
    candidateTypes: { local: 'host', remote: 'relay' },
    codec: 'audio/opus',
  })
})

test('counters that begin anew and reports without anything give no nonsense', () => {
  const nothing = readSample([])
  expect(compareSamples(nothing, nothing)).toMatchObject({ intervalMs: 0, roundTripMs: undefined, path: undefined })
  const { inbound, outbound } = compareSamples(at(3000, 190, 30_000, 15), at(4000, 3, 100, 0))
  expect(inbound.audio).toEqual({ bitsPerSecond: 0, packets: 0, loss: undefined })
  expect(outbound.audio).toEqual({ bitsPerSecond: 0, packets: 0, loss: undefined })
})

test('a browser that has no transport statistics marks the pair itself', () => {
  const pair = { type: 'candidate-pair', currentRoundTripTime: 0.001, localCandidateId: 'l', remoteCandidateId: 'r' }
  const sample = readSample(
    report({ id: 'p1', ...pair }, { id: 'p2', ...pair, selected: true, currentRoundTripTime: 0.009 }),
  )
  expect(sample.roundTripMs).toBe(9)
  expect(sample.path).toBe('direct')
})

test('nobody looks before there is a connection, nor while it is lost; what came before it was lost is not compared', async () => {
  let looks = 0
  let packetsReceived = 0
  const connection = Object.assign(new EventTarget(), {
    connectionState: 'new',
    async getStats() {
      looks++
      packetsReceived += 10
      const inbound = {
        id: 'in',
        type: 'inbound-rtp',
        kind: 'audio',
        timestamp: looks,
        packetsReceived,
        bytesReceived: 0,
      }
      return new Map([['in', inbound]])
    },
  })
  const become = (connectionState: string) => {
    connection.connectionState = connectionState
    connection.dispatchEvent(new Event('connectionstatechange'))
  }
  let seen: { readonly packets: number; readonly looks: number }[] = []
  let next = Promise.withResolvers<void>()
  const stop = watchFlow(connection as unknown as RTCPeerConnection, {
    looked({ inbound }) {
      seen.push({ packets: inbound.audio.packets, looks })
      next.resolve()
    },
    intervalMs: () => 1,
  })
  become('connecting')
  await Bun.sleep(20)
  expect(looks).toBe(0)
  become('connected')
  await next.promise
  expect(seen[0]).toEqual({ packets: 10, looks: 2 })
  become('disconnected')
  // A look that was under way ends meanwhile.
  await Bun.sleep(0)
  const before = looks
  await Bun.sleep(20)
  expect(looks).toBe(before)
  packetsReceived += 1_000
  seen = []
  next = Promise.withResolvers()
  become('connected')
  await next.promise
  expect(seen[0]).toEqual({ packets: 10, looks: before + 2 })
  stop()
})
