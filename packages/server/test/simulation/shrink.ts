import { live, type WorldOptions } from './world.ts'

/**
 * A smaller world of the same seed in which something is wrong, too: it ends earlier, and what does not matter does not break.
 * Every attempt lives a world through.
 */
export async function shrink(options: WorldOptions): Promise<WorldOptions> {
  let smallest = options
  async function isAlsoBad(candidate: WorldOptions): Promise<boolean> {
    const isBad = (await live(candidate)).verdict.violations.length > 0
    if (isBad) smallest = candidate
    return isBad
  }
  for (let step = options.seconds / 2; step >= 1; step /= 2) {
    const seconds = Math.round(smallest.seconds - step)
    if (seconds >= 1) await isAlsoBad({ ...smallest, seconds })
  }
  const { drawn } = await live(smallest)
  for (let nth = drawn - 1; nth >= 0; nth--)
    await isAlsoBad({ ...smallest, without: [...(smallest.without ?? []), nth] })
  return smallest
}
