import type { Timers } from '../ports/clock.ts'
import { beatMs, type OtherNode } from './heartbeats.port.ts'

/** Samples of the database's clock of which the one with the shortest way is believed. */
const samples = 16
/** Two samples are of two clocks if they are further apart than the ways there and back explain, by this time in ms. */
const jumpMs = 200
/** A clock whose best sample took no longer is known well enough to serve by it, in ms. */
const wellKnownMs = 50

interface Sample {
  readonly offset: number
  readonly way: number
}

/** The answer was made somewhere between the question and now: the shorter the way, the nearer the middle is to it. */
function isOfOtherClock(databaseNow: number, sent: number, received: number, known: readonly Sample[]): boolean {
  const half = (received - sent) / 2
  return known.some(({ offset, way }) => Math.abs(databaseNow - (sent + half) - offset) > half + way / 2 + jumpMs)
}

/** The clock of the database, as this machine knows it by what the database says at each beat. */
export function createDatabaseClock(timers: Pick<Timers, 'monotonic'>) {
  let known: Sample[] = []
  let offset = 0
  /** For how long this machine's monotonic clock is known to have stood still, in ms. */
  let stood = 0
  /** When this machine and the database last agreed on how time passes, and everybody's count then. */
  let agreed: { readonly at: number; readonly beats: ReadonlyMap<string, number> } = { at: 0, beats: new Map() }
  /** The last beat did not agree. Nobody may have counted after the previous beat: another beat shows whose clock it was. */
  let isInDoubt = false

  const monotonic = () => timers.monotonic() + stood
  const best = () => known.reduce((best, each) => (each.way < best.way ? each : best))

  /**
   * The database said its time between `sent` and `received`, and with it how often the others have counted, and by how many ms
   * more its clock has jumped in all, as the nodes have agreed.
   */
  function learn(
    databaseNow: number,
    sent: number,
    received: number,
    others: readonly OtherNode[],
    jumpedMs = 0,
  ): void {
    // This node may have seen that jump itself.
    if (jumpedMs !== 0 && isOfOtherClock(databaseNow, sent, received, known)) {
      known = known.map((sample) => ({ ...sample, offset: sample.offset + jumpedMs }))
      offset += jumpedMs
    }
    const moved = databaseNow - (sent + (received - sent) / 2) - offset
    const isOther = isOfOtherClock(databaseNow, sent, received, known)
    if (isOther && stoodStill(moved, received - agreed.at, others)) {
      // The looks of the others took their time: this machine did not see it pass.
      stood += moved
      learn(databaseNow, sent + moved, received + moved, others)
      return
    }
    if (isOther && !isInDoubt && moved > 0 && others.length > 0) {
      isInDoubt = true
      return
    }
    // The database's clock jumped, or it is another database by now: earlier samples say nothing any more.
    const sample = { offset: databaseNow - (sent + received) / 2, way: received - sent }
    known = [...(isOther ? [] : known), sample].slice(-samples)
    offset = best().offset
    isInDoubt = false
    agreed = { at: received, beats: new Map(others.map(({ name, beats }) => [name, beats])) }
  }

  /** Whether others counted on for as long as the database says, rather than for as long as this machine's clock says. */
  function stoodStill(moved: number, elapsed: number, others: readonly OtherNode[]): boolean {
    const counted = others.map(({ name, beats }) => beats - (agreed.beats.get(name) ?? beats))
    return Math.max(0, ...counted) * beatMs > elapsed + moved / 2 && moved > 0
  }

  return {
    /** In ms, as far as this machine knows for how long it stood still. */
    monotonic,
    /** In ms since the epoch. */
    now: () => monotonic() + offset,
    learn,
    /**
     * One answer of a busy database may be off by half of the time that it took. A node that began with that would take the
     * right time for a jump.
     */
    async sample(read: () => Promise<number>): Promise<void> {
      for (let n = 0; n < samples && best().way > wellKnownMs; n++) {
        const sent = monotonic()
        learn(await read(), sent, monotonic(), [])
      }
    },
  }
}

export type DatabaseClock = ReturnType<typeof createDatabaseClock>
