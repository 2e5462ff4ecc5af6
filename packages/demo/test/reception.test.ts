import { expect, test } from 'bun:test'
import type { MediaStats } from '@ringwire/client/media/types'
import { createReception } from '../src/page/reception.ts'

function look(audio: number, video: number, intervalMs = 500): MediaStats {
  const flow = (packets: number) => ({ bitsPerSecond: packets * 8000, packets, loss: undefined })
  return {
    intervalMs,
    ...{ roundTripMs: 1, path: 'direct', audioLevel: 0, picture: undefined },
    inbound: { audio: flow(audio), video: flow(video) },
    outbound: { audio: flow(25), video: flow(25) },
  }
}

test('a picture is missed after a second and a half, and is back with its first packet', () => {
  const receive = createReception()
  expect(receive(look(25, 40))).toBe('all')
  expect([receive(look(25, 0)), receive(look(25, 0)), receive(look(25, 0))]).toEqual(['all', 'all', 'sound'])
  expect(receive(look(25, 1))).toBe('all')
})

test('a picture that is sent once a second is a picture', () => {
  const receive = createReception()
  for (const video of [1, 0, 0, 1, 0, 1, 0, 0, 1]) expect(receive(look(25, video))).toBe('all')
})

test('where nothing comes at all, that is told apart from a picture that is missing', () => {
  const receive = createReception()
  receive(look(25, 40))
  expect(receive(look(0, 0, 1500))).toBe('nothing')
  expect(receive(look(25, 0))).toBe('sound')
  expect(receive(look(0, 40))).toBe('all')
})
