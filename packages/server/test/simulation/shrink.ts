import { live, type WorldOptions } from './world.ts'

/**
 * A smaller world of the same seed in which the same kind of thing is wrong: it ends earlier, and what does not matter does not
 * break. Every attempt lives a world through.
 */
export async function shrink(options: WorldOptions): Promise<WorldOptions> {
  let smallest = options
  const [first] = (await live(options)).verdict.violations
  async function tryOne(candidate: WorldOptions): Promise<void> {
    const { violations } = (await live(candidate)).verdict
    if (violations.some(({ kind }) => kind === first?.kind)) smallest = candidate
  }
  for (let step = options.seconds / 2; step >= 1; step /= 2) {
    const seconds = Math.round(smallest.seconds - step)
    if (seconds >= 1) await tryOne({ ...smallest, seconds })
  }
  const { drawn } = await live(smallest)
  for (let nth = drawn - 1; nth >= 0; nth--) await tryOne({ ...smallest, without: [...(smallest.without ?? []), nth] })
  return smallest
}
