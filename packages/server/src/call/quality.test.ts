import { expect, test } from 'bun:test'
import { CallQuality } from '@ringwire/protocol/backend'
import type { CallStats } from '@ringwire/protocol/events/call'
import { createValidator } from '@ringwire/protocol/validate'
import fc from 'fast-check'
import type { TimelineRow } from './observed.ts'
import { addReport, qualityOf, type SideReports } from './quality.ts'

type Stats = CallStats['stats']
const isQuality = createValidator(CallQuality)
const row = (side: 'caller' | 'callee', reports: SideReports): TimelineRow => ({
  ...{ product: 'shop', callUuid: 'u', id: crypto.randomUUID(), at: 0, what: 'quality', side },
  detail: { ...reports },
})
const added = (all: readonly Stats[]) => all.reduce<SideReports | undefined>(addReport, undefined) as SideReports

test('[STAT1] the least, the mean and the greatest of each number that was named, and the last texts', () => {
  const reports = added([
    { rtt_ms: 40, loss: 0, codec: 'audio/opus' },
    { rtt_ms: 80, loss: null },
    { rtt_ms: 60, jitter_ms: 5, candidate_pair: { local: 'relay', remote: 'host' } },
  ])
  expect(qualityOf([row('callee', reports)])).toEqual({
    caller: null,
    callee: {
      reports: 3,
      rtt_ms: { min: 40, avg: 60, max: 80 },
      jitter_ms: { min: 5, avg: 5, max: 5 },
      loss: { min: 0, avg: 0, max: 0 },
      candidate_pair: { local: 'relay', remote: 'host' },
      codec: 'audio/opus',
    },
  })
  expect(qualityOf([])).toBeNull()
})

test('[STAT1] to whichever processes it was reported: what they know together is what one would know', () => {
  const number = fc.option(fc.double({ min: 0, max: 1_000, noNaN: true }))
  const stats: fc.Arbitrary<Stats> = fc.record({ rtt_ms: number, bitrate: number }, { requiredKeys: [] })
  fc.assert(
    fc.property(fc.array(stats, { minLength: 1 }), fc.array(stats, { minLength: 1 }), (one, other) => {
      const together = qualityOf([row('caller', added([...one, ...other]))])?.caller
      const apart = qualityOf([row('caller', added(one)), row('caller', added(other))])?.caller
      expect(isQuality({ caller: apart, callee: null }).ok).toBe(true)
      for (const name of ['rtt_ms', 'bitrate'] as const) {
        const [a, b] = [together?.[name], apart?.[name]]
        expect([a?.min, a?.max]).toEqual([b?.min, b?.max])
        expect(Math.abs((a?.avg ?? 0) - (b?.avg ?? 0))).toBeLessThan(0.001)
        const values = [...one, ...other].flatMap((each) => each[name] ?? [])
        if (values.length === 0) expect(a).toBeUndefined()
        else expect(Math.abs((a?.avg ?? 0) - values.reduce((x, y) => x + y, 0) / values.length)).toBeLessThan(0.001)
      }
      expect(together?.reports).toBe(one.length + other.length)
    }),
  )
})
