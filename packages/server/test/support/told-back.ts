import { expect } from 'bun:test'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import { clockMs } from './clocks.ts'

/** So much later than its jitter a client may be back before its peer hears that it is away [PEER1]. In ms. */
export const lateBackMs = 1_000

/** The close reason of a client that was closed with 1012. */
export function jitterOf({ code, reason }: { readonly code: number; readonly reason: string }): number {
  expect([code, reason]).toEqual([1012, expect.stringMatching(/^restart, jitter_ms=\d+$/)])
  return Number(reason.split('=')[1])
}

/**
 * What a client heard of a peer that had to come back, and did at `backAt`: nothing, or, if that was late, that it was
 * away, and back. A machine that stands still makes anybody late.
 */
export function expectAwayOnlyIfLate(to: ExtendedClient, call: string, jitterMs: number, backAt: number): void {
  const told = to.pushes.filter(({ event, data }) => event.startsWith('call.peer_') && data.call_uuid === call)
  for (const { event, data } of told)
    if (event === 'call.peer_away')
      expect(Date.parse(data.since) + jitterMs + lateBackMs).toBeLessThanOrEqual(backAt + clockMs)
  const events = told.map(({ event }) => event)
  // If a client leaves again before its peer hears of its return, the peer hears twice that it is away [ORD3].
  const changes = events.filter((event, i) => event !== events[i - 1])
  expect(changes).toEqual(changes.map((_, i) => (i % 2 ? 'call.peer_back' : 'call.peer_away')))
}
