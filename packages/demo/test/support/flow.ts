import { expect } from 'bun:test'
import { soon } from '@ringwire/testkit/patience'
import type { Page } from 'playwright-core'

declare global {
  interface Window {
    ringwireDemo: { peerConnection: RTCPeerConnection | undefined }
  }
}

/** The shortest window, in ms. */
const windowMs = 500

export type FlowWindow = { ms: number; audio: number; video: number }

/**
 * Packets that arrived, per kind, in windows of at least 500 ms. The windows are measured by the timestamps of the
 * statistics themselves, so a slow machine makes them longer but never empties them. They begin when something of each of
 * `begun` has come: a call is live by what comes first, and the other side may still be opening its devices.
 */
export async function measureFlow(
  page: Page,
  windows: number,
  begun: readonly ('audio' | 'video')[] = [],
): Promise<FlowWindow[]> {
  const state = await page.evaluateHandle(() => ({
    found: [] as { ms: number; audio: number; video: number }[],
    last: undefined as { at: number; audio: number; video: number } | undefined,
    reading: false,
  }))
  await page.waitForFunction(
    ({ state, windows, begun }) => {
      const read = async () => {
        const report = await window.ringwireDemo.peerConnection?.getStats()
        const now = { at: 0, audio: 0, video: 0 }
        for (const stats of report?.values() ?? []) {
          if (stats.type !== 'inbound-rtp') continue
          now.at = Math.max(now.at, stats.timestamp)
          now[stats.kind as 'audio' | 'video'] += stats.packetsReceived
        }
        // A connection that was replaced counts from nothing, and so may a stream after a negotiation.
        const fell = state.last && (now.audio < state.last.audio || now.video < state.last.video)
        if (fell && state.found.length === 0) state.last = undefined
        const { last } = state
        if (now.at === 0 || (last && now.at - last.at < 500)) return
        if (!last && begun.some((kind) => now[kind] === 0)) return
        if (last)
          state.found.push({ ms: now.at - last.at, audio: now.audio - last.audio, video: now.video - last.video })
        state.last = now
      }
      // A promise would count as true, so the reading goes on beside the polling.
      if (!state.reading) {
        state.reading = true
        void read().finally(() => {
          state.reading = false
        })
      }
      return state.found.length >= windows
    },
    { state, windows, begun },
    { polling: 50, timeout: 60_000 },
  )
  return state.evaluate(({ found }) => found)
}

/**
 * Sound in every window, and pictures in all of them together: a browser that is short of processor time or bandwidth
 * sends sound and leaves out frames. If more processes want to run than there are cores, a window or two may be silent.
 */
export function expectFlow(flow: readonly FlowWindow[], kinds: readonly ('audio' | 'video')[]): void {
  if (kinds.includes('audio')) {
    expect(silentOf(flow).length, JSON.stringify(flow)).toBeWithin(0, mostSilent(flow) + 1)
  }
  if (kinds.includes('video')) expect(pictures(flow)).toBeGreaterThan(0)
}

/** Whether it is as `expectFlow` expects it. */
export function isFlowing(flow: readonly FlowWindow[], kinds: readonly ('audio' | 'video')[]): boolean {
  const isHeard = !kinds.includes('audio') || silentOf(flow).length <= mostSilent(flow)
  return isHeard && (!kinds.includes('video') || pictures(flow) > 0)
}

const silentOf = (flow: readonly FlowWindow[]) => flow.filter(({ audio }) => audio === 0)
const mostSilent = ({ length }: readonly FlowWindow[]) => Math.min(Math.ceil(soon(windowMs) / windowMs), length) - 1
const pictures = (flow: readonly FlowWindow[]) => flow.reduce((sum, { video }) => sum + video, 0)

/** Which kinds of candidates carry the call. */
export function selectedPair(page: Page): Promise<{ local: string; remote: string }> {
  return page.evaluate(async () => {
    const report = await window.ringwireDemo.peerConnection?.getStats()
    const transport = [...(report?.values() ?? [])].find((stats) => stats.type === 'transport')
    const pair = report?.get(transport?.selectedCandidatePairId)
    const type = (id: string) => String(report?.get(id)?.candidateType)
    return { local: type(pair?.localCandidateId), remote: type(pair?.remoteCandidateId) }
  })
}
