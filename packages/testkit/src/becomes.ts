import { until } from './patience.ts'

/**
 * Resolves when what is read is as expected: a text that the expression matches, or an equal value. A page changes a moment
 * after what makes it change, so a value that has just been caused is read again until it is there. This proves nothing about
 * a value that has to stay: read that once, after an event that comes later. A failure shows what was read last. `ms` as for
 * `until`.
 */
export async function becomes(read: () => Promise<unknown>, expected: unknown, ms?: number): Promise<void> {
  let last: unknown
  const isSo = async () => {
    last = await read()
    return expected instanceof RegExp ? typeof last === 'string' && expected.test(last) : Bun.deepEquals(last, expected)
  }
  await until(() => `${Bun.inspect(last)} becomes ${Bun.inspect(expected)}`, isSo, ms)
}
