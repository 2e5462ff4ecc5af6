/**
 * Preloaded into a node: the wall clock of its process is off by `RINGWIRE_TEST_CLOCK_OFF_MS`, as that of a machine
 * without NTP is. Its monotonic clock is right.
 */
const offMs = Number(process.env.RINGWIRE_TEST_CLOCK_OFF_MS)
const RightDate = Date

class WrongDate extends RightDate {
  // biome-ignore lint/suspicious/noExplicitAny: whatever Date takes.
  constructor(...given: any[]) {
    if (given.length === 0) super(RightDate.now() + offMs)
    else super(...(given as [number]))
  }
  static override now(): number {
    return RightDate.now() + offMs
  }
}

globalThis.Date = WrongDate as unknown as DateConstructor
