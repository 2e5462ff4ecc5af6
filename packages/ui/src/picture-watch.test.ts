import { expect, test } from 'bun:test'
import { createPictureWatch } from './picture-watch.ts'

const flow = (packets: number) => ({ bitsPerSecond: 0, packets, loss: undefined })

function watch(packets: number[]): boolean[] {
  const comes = createPictureWatch()
  return packets.map((video) => comes({ intervalMs: 500, inbound: { audio: flow(25), video: flow(video) } }))
}

test('after a gap of 1.5 s no picture comes, until one does', () => {
  expect(watch([30, 0, 0, 0, 30])).toEqual([true, true, true, false, true])
})

test('a picture in which nothing moves comes once a second', () => {
  expect(watch([1, 0, 1, 0, 1])).toEqual([true, true, true, true, true])
})
