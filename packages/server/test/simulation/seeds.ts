/** A thread of `npm run simulate`: lives the worlds that it gets, one after another. */
import { type Lived, outlineOf } from './outline.ts'
import { live, type WorldOptions } from './world.ts'

declare const self: Worker

self.onmessage = async ({ data }: MessageEvent<WorldOptions>) => {
  self.postMessage(await livedThrough(data))
}

async function livedThrough(options: WorldOptions): Promise<Lived> {
  try {
    return outlineOf(options, await live(options))
  } catch (error) {
    return { seed: options.seed, steps: 0, calls: 0, faults: [], violations: [], failure: String(error) }
  }
}
