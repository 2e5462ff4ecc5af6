import { expect, test } from 'bun:test'
import { createReception } from './reception.ts'

const flow = (packets: number) => ({ bitsPerSecond: 0, packets, loss: undefined })

function receive(steps: [audio: number, video: number][], intervalMs = 500) {
  const reception = createReception()
  return steps.map(([audio, video]) => reception({ intervalMs, inbound: { audio: flow(audio), video: flow(video) } }))
}

test('a gap of 1.5 s is none of its kind', () => {
  const sound: [number, number] = [25, 0]
  expect(receive([[25, 30], sound, sound, sound, [25, 30]])).toEqual(['all', 'all', 'all', 'sound', 'all'])
})

test('neither picture nor sound is nothing', () => {
  const none: [number, number] = [0, 0]
  expect(receive([none, none, none])).toEqual(['all', 'all', 'nothing'])
})

test('a picture in which nothing moves comes once a second', () => {
  expect(
    receive([
      [0, 1],
      [0, 0],
      [0, 1],
      [0, 0],
      [0, 1],
    ]),
  ).toEqual(['all', 'all', 'all', 'all', 'all'])
})
