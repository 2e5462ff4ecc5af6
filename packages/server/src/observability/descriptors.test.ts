import { expect, test } from 'bun:test'
import { createDescriptors, createSampledCount } from './descriptors.ts'

/** A process of which `open` descriptors are open, and a read takes `tookMs`. */
function sampled(limit: number, open: number, tookMs: number) {
  const process = { open, at: 0, reads: 0 }
  const count = createSampledCount({
    limit,
    now: () => process.at,
    read() {
      process.reads++
      process.at += tookMs
      return process.open
    },
  })
  /** Looks every 100 ms for `ms`. */
  const look = (ms: number) => {
    for (const end = process.at + ms; process.at < end; process.at += 100) count.count()
  }
  return { process, look, descriptors: createDescriptors({ limit, ...count }) }
}

test('[MET2] far from the limit a slow read of descriptors is rare, near it there is one each second', () => {
  const far = sampled(20_000, 9_000, 8)
  far.look(30_000)
  expect(far.process.reads).toBeLessThan(6)
  const near = sampled(20_000, 18_000, 8)
  near.look(30_000)
  expect(near.process.reads).toBeGreaterThan(20)
})

test('[MET2] a quick read is made each second, however much is free', () => {
  const { look, process } = sampled(1_024, 50, 0.1)
  look(30_000)
  expect(process.reads).toBeGreaterThan(20)
})

test('[MET2] a count that the kernel has is read each time when half of the limit is open, and before that now and then', () => {
  const process = { open: 100, at: 0, reads: 0 }
  const count = createSampledCount({
    limit: 1_000,
    now: () => process.at,
    read() {
      process.reads++
      return process.open
    },
    restMs: (isFar) => (isFar ? 10 : 0),
  })
  const descriptors = createDescriptors({ limit: 1_000, ...count })
  for (let n = 0; n < 400; n++) descriptors.roomForNewcomer()
  expect([process.reads, descriptors.open()]).toEqual([1, 499])
  // The next one may be over half of the limit.
  process.open = 500
  descriptors.roomForNewcomer()
  for (process.open = 501; process.open <= 520; process.open++) descriptors.roomForNewcomer()
  expect([process.reads, descriptors.open()]).toEqual([22, 521])
})

test('[MET2] between reads newcomers count, and bring the next read closer', () => {
  const { descriptors, process } = sampled(20_000, 9_000, 8)
  expect(descriptors.room()).toBe('free')
  for (let n = 0; n < 1_001; n++) descriptors.roomForNewcomer()
  expect([descriptors.open(), process.reads]).toEqual([10_001, 1])
  process.at += 1_001
  process.open = 9_500
  expect([descriptors.open(), process.reads]).toEqual([9_500, 2])
})

test('[MET2] newcomers get in exactly as long as the service says that they do', () => {
  let open = 0
  const descriptors = createDescriptors({ limit: 100, count: () => open })
  for (open = 60; open < 100; open++) {
    const isAdmitted = descriptors.admits()
    // Its socket is open at the time of the question.
    open++
    expect([open, descriptors.roomForNewcomer() === 'free']).toEqual([open, isAdmitted])
    open--
  }
})

test('[MET2] where not even the read gets a descriptor, none is left', () => {
  const count = createSampledCount({
    limit: 100,
    now: () => 0,
    read() {
      throw new Error('EMFILE')
    },
  })
  expect(createDescriptors({ limit: 100, ...count }).room()).toBe('out')
})
