import { expect, test } from 'bun:test'
import { statNumbers } from '@ringwire/protocol/events/call'
import fc from 'fast-check'
import type { CallStats } from '../types.ts'
import { createReports } from './reports.ts'
import type { FlowStats, MediaStats } from './types.ts'

const flow = (packets: number, loss?: number): FlowStats => ({ bitsPerSecond: packets * 100, packets, loss })
const look = (fields: Partial<MediaStats> = {}): MediaStats => ({
  ...{ intervalMs: 1000, roundTripMs: 40, path: 'direct', audioLevel: undefined, picture: undefined },
  ...{ jitterMs: 4, framesDropped: 1, candidateTypes: { local: 'host', remote: 'srflx' }, codec: 'audio/opus' },
  inbound: { audio: flow(100, 0.02), video: flow(0) },
  outbound: { audio: flow(100, 0), video: flow(0) },
  ...fields,
})

function begin() {
  const sent: CallStats[] = []
  let now = 0
  const reports = createReports({ send: (stats) => void sent.push(stats), now: () => now })
  /** A look each second. */
  const looks = (seconds: number, fields?: Partial<MediaStats>) => {
    for (let n = 0; n < seconds; n++, now += 1000) reports.looked(look(fields))
  }
  return { sent, looks, end: reports.end }
}

test('[STAT1] the first report after 5 s, one every 30 s, and one at the end', () => {
  const { sent, looks, end } = begin()
  looks(5)
  expect(sent).toHaveLength(0)
  looks(1)
  expect(sent).toEqual([
    {
      ...{ rtt_ms: 40, jitter_ms: 4, loss: 0.01, bitrate: 10_000, frames_dropped: 6 },
      ...{ candidate_pair: { local: 'host', remote: 'srflx' }, codec: 'audio/opus' },
    },
  ])
  looks(29)
  expect(sent).toHaveLength(1)
  looks(1, { roundTripMs: 340 })
  expect([sent.length, sent[1]?.rtt_ms, sent[1]?.frames_dropped]).toEqual([2, 50, 30])
  looks(60)
  expect(sent).toHaveLength(4)
  looks(2)
  end()
  expect([sent.length, sent[4]?.frames_dropped]).toEqual([5, 2])
  end()
  expect(sent).toHaveLength(5)
})

test('[STAT1] a call without media says nothing, and what is not known is left out', () => {
  const { sent, looks, end } = begin()
  end()
  looks(1, {
    ...{ roundTripMs: undefined, jitterMs: undefined, framesDropped: undefined, codec: 'audio/opus;x=1' },
    ...{ candidateTypes: { local: 'new', remote: 'host' }, intervalMs: 0 },
    ...{ inbound: { audio: flow(0), video: flow(0) }, outbound: { audio: flow(0), video: flow(0) } },
  })
  end()
  expect(sent).toEqual([{}])
})

test('[STAT1] whatever a browser counts: the service takes the report', () => {
  const number = fc.option(fc.integer({ min: 0, max: 100_000 }), { nil: undefined })
  const share = fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined })
  const flows = fc.record({ bitsPerSecond: fc.nat(1e9), packets: fc.nat(1e6), loss: share })
  const both = fc.record({ audio: flows, video: flows })
  const fields = fc.record({
    roundTripMs: number,
    jitterMs: number,
    framesDropped: number,
    inbound: both,
    outbound: both,
  })
  fc.assert(
    fc.property(fields, (given) => {
      const { sent, looks, end } = begin()
      looks(2, given)
      end()
      const [stats] = sent
      for (const name of Object.keys(statNumbers) as (keyof typeof statNumbers)[]) {
        const value = stats?.[name]
        if (value === undefined) continue
        expect([name, value >= 0 && value <= statNumbers[name].most]).toEqual([name, true])
      }
    }),
  )
})
