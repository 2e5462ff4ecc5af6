import type { Sink } from '../../src/ports/sessions.ts'

/** A socket that takes everything at once and stays open. `more` is what a test looks at. */
export function openSink(more: Partial<Sink>): Sink {
  return {
    send() {},
    pushed() {},
    writtenSeq: 0,
    probe: async () => true,
    close() {},
    retire: async () => {},
    isBusy: false,
    isClosed: false,
    ...more,
  }
}
