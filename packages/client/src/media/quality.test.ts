import { expect, test } from 'bun:test'
import { createQuality } from './quality.ts'
import type { FlowStats, MediaStats } from './types.ts'

const flow = (loss: number | undefined): FlowStats => ({ bitsPerSecond: 0, packets: 50, loss })

/** One look, a second after the previous one. */
function look({
  heard = 0,
  sent = 0,
  roundTripMs = 40,
}: {
  heard?: number
  sent?: number
  roundTripMs?: number
}): MediaStats {
  return {
    ...{ intervalMs: 1000, roundTripMs, path: 'direct', audioLevel: undefined, picture: undefined },
    ...{ jitterMs: undefined, framesDropped: undefined, candidateTypes: undefined, codec: undefined },
    inbound: { audio: flow(heard), video: flow(undefined) },
    outbound: { audio: flow(sent), video: flow(undefined) },
  }
}

/** The seconds until it is said. */
function secondsUntil(wanted: string, of: MediaStats, quality: ReturnType<typeof createQuality>): number {
  for (let seconds = 1; seconds <= 60; seconds++) if (quality(of) === wanted) return seconds
  return Number.POSITIVE_INFINITY
}

test('nothing is said of the first two seconds', () => {
  const quality = createQuality()
  expect(quality(look({}))).toBe('unknown')
  expect(quality(look({}))).toBe('good')
})

test('a fifth lost in either direction is poor within three seconds, and over it is good again within eight', () => {
  for (const bad of [{ heard: 0.2 }, { sent: 0.2 }]) {
    const quality = createQuality()
    secondsUntil('good', look({}), quality)
    expect(secondsUntil('poor', look(bad), quality)).toBeLessThanOrEqual(3)
    for (let i = 0; i < 10; i++) quality(look(bad))
    const seconds = secondsUntil('good', look({}), quality)
    expect(seconds).toBeGreaterThan(3)
    expect(seconds).toBeLessThanOrEqual(8)
  }
})

test('two percent that are reported once in five seconds, as a tenth of one second, stay good', () => {
  const quality = createQuality()
  secondsUntil('good', look({}), quality)
  const said = Array.from({ length: 40 }, (_, i) => quality(look({ sent: i % 5 === 0 ? 0.1 : 0 })))
  expect(said.filter((it) => it !== 'good')).toEqual([])
})

test('between the thresholds it stays what it was', () => {
  const good = createQuality()
  secondsUntil('good', look({}), good)
  expect(secondsUntil('poor', look({ heard: 0.06 }), good)).toBe(Number.POSITIVE_INFINITY)
  const poor = createQuality()
  secondsUntil('poor', look({ heard: 0.2 }), poor)
  expect(secondsUntil('good', look({ heard: 0.06 }), poor)).toBe(Number.POSITIVE_INFINITY)
})

test('a round trip of 800 ms is poor, one of 300 ms is not; where none is known the one before holds', () => {
  const far = createQuality()
  expect(secondsUntil('poor', look({ roundTripMs: 800 }), far)).toBeLessThanOrEqual(6)
  const unknown: MediaStats = { ...look({}), roundTripMs: undefined }
  expect(secondsUntil('good', unknown, far)).toBe(Number.POSITIVE_INFINITY)
  expect(secondsUntil('poor', look({ roundTripMs: 300 }), createQuality())).toBe(Number.POSITIVE_INFINITY)
})
