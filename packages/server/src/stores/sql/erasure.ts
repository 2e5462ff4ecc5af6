import type { Participant, Side } from '../../call/call.ts'
import { type Erased, effectsWithout, effectsWithoutOutsider, hookBodyWithout } from '../../call/erase.ts'
import { macrotask } from '../../ports/macrotask.ts'
import type { MaybePromise } from '../../ports/maybe.ts'
import { StoreError } from '../../ports/store-error.ts'
import { effectsOf, effectsText } from './rows.ts'

/*
 * How the rows of a participant are blanked [SRV2]: the events of a call first, and then the call itself, which is found by
 * the name that it loses. So it can be interrupted, and begun again. A text that somebody else has changed meanwhile, who
 * erases the other side, is read again.
 */

/** So few that nothing else waits for long. */
export const erasedAtOnce = 50
export const sidesOfCall = ['caller', 'callee'] as const
/** A member was rung in a call to a group, a transferrer began a call of two others: neither is a side of it [GROUP1, XFER1]. */
export type Part = Side | 'member' | 'transferrer'
const parts: readonly Part[] = [...sidesOfCall, 'member', 'transferrer']
/** Where a call to a group names its members. */
export const memberLists = ['members', 'declined', 'left'] as const
/** Of deliveries that are looked through; few of them are read. */
export const lookedThrough = 200
const mostRepeats = 50
/** Between two pages others write. In ms. */
const pauseMs = 5

/** The place of somebody who was erased, as a row holds it: `placeOf` says that there is none. */
export const blankPlace = JSON.stringify({
  ...{ state: 'vacant', sessionId: '', deviceId: null, node: '', settled: false, since: 0 },
})

export interface ErasableEvent {
  readonly call_id: number
  readonly version: number
  readonly by_user_id: string | null
  readonly by_role: string | null
  readonly notices: string | null
}

/** An event as it is to be written over what it `was`; `author`: the erased participant did it, 1 or 0. */
export interface BlankedEvent {
  readonly call_id: number
  readonly version: number
  readonly author: number
  readonly was: string | null
  readonly notices: string | null
}

/** Where a call is among those of one side. */
export interface CallPosition {
  readonly started_at: number
  readonly call_uuid: string
}

export const firstPosition: CallPosition = { started_at: 0, call_uuid: '' }

export interface ErasableCall extends CallPosition {
  readonly id: number
}

export interface ErasablePage {
  readonly calls: readonly ErasableCall[]
  readonly events: readonly ErasableEvent[]
}

export interface CallRows {
  /**
   * The next calls after a position that name the participant in this part, with all of their events. They are over, or live
   * calls to a group of which only events name a member any more.
   */
  page(side: Part, participant: Participant, after: CallPosition): MaybePromise<ErasablePage>
  /** Writes the events, and the calls where all events were as they should; answers how many calls. */
  write(side: Part, participant: Participant, ids: readonly number[], events: readonly BlankedEvent[]): Promise<number>
}

/** Told how many rows a step has just erased: the steps before one that fails are not lost. */
export type OnErased = (count: number) => MaybePromise<unknown>

export async function eraseCalls(rows: CallRows, participant: Participant, onErased: OnErased): Promise<number> {
  let count = 0
  for (const side of parts) {
    // A call may have ended behind the position: the side is done once a whole round has found nothing.
    for (let found = -1; found !== 0; count += found) found = await eraseSide(rows, side, participant, onErased)
  }
  return count
}

/** One round over the calls of a side. Its position passes what is blanked already, of which an index may still be full. */
async function eraseSide(rows: CallRows, side: Part, participant: Participant, onErased: OnErased): Promise<number> {
  let count = 0
  let after = firstPosition
  for (let repeats = 0; ; ) {
    const { calls, events } = await rows.page(side, participant, after)
    const last = calls.at(-1)
    if (last === undefined) return count
    const blanked = events.flatMap((event) => blank(event, side, participant))
    const ids = calls.map(({ id }) => id)
    const written = await rows.write(side, participant, ids, blanked)
    count += written
    if (written > 0) {
      repeats = 0
      after = last
      await onErased(written)
    } else if (++repeats > mostRepeats) throw busy()
    await Bun.sleep(pauseMs)
  }
}

function blank(event: ErasableEvent, side: Part, who: Erased): BlankedEvent[] {
  const { call_id, version, by_user_id, by_role, notices: was } = event
  const isAuthor = by_user_id === who.userId && by_role === who.role
  const notices = was === null ? null : effectsText(withoutPart(effectsOf(was), side, who))
  if (!isAuthor && notices === was) return []
  return [{ call_id, version, author: isAuthor ? 1 : 0, was, notices }]
}

function withoutPart(effects: ReturnType<typeof effectsOf>, part: Part, who: Erased) {
  const isSide = part === 'caller' || part === 'callee'
  return isSide ? effectsWithout(effects, part, who) : effectsWithoutOutsider(effects, who)
}

export interface LookedThrough {
  readonly id: string
  /** Null: it mentions nobody of this name. */
  readonly body: string | null
}

/** A delivery as it is to be written over what it `was`. */
export interface BlankedDelivery {
  readonly id: string
  readonly was: string
  readonly body: string
}

export interface DeliveryRows {
  /** The next ones of an endpoint after one, `lookedThrough` at the most. */
  page(endpointId: string, after: string): MaybePromise<readonly LookedThrough[]>
  /** Answers how many were as they should. */
  write(rows: readonly BlankedDelivery[]): Promise<number>
}

export async function eraseDeliveries(
  rows: DeliveryRows,
  endpointIds: readonly string[],
  who: Erased,
  onErased: OnErased,
): Promise<number> {
  let count = 0
  for (const endpointId of endpointIds) {
    for (let after = '', isLast = false, repeats = 0; !isLast; ) {
      const page = await rows.page(endpointId, after)
      const blanked = page.flatMap(({ id, body: was }) => {
        const body = was === null ? undefined : hookBodyWithout(was, who)
        return was === null || body === undefined ? [] : [{ id, was, body }]
      })
      const written = blanked.length === 0 ? 0 : await rows.write(blanked)
      count += written
      if (written > 0) await onErased(written)
      if (written < blanked.length) {
        repeats++
        if (repeats > mostRepeats) throw busy()
      } else {
        isLast = page.length < lookedThrough
        after = page.at(-1)?.id ?? after
      }
      // Most pages hold nothing of theirs.
      await (written > 0 ? Bun.sleep(pauseMs) : macrotask())
    }
  }
  return count
}

const busy = () => new StoreError('unavailable', 'What is to be erased changed again and again.')
