import type { Timers } from '../ports/clock.ts'
import { tagOfSessionId } from '../ports/session-id.ts'
import type { Sessions } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import { newestVersion } from '../session/session.ts'
import type { SessionTable } from '../session/table.ts'
import type { AskOwner } from './ask-owner.ts'
import { type Frame, notHere } from './frames.ts'
import type { Inbox } from './inbox.ts'
import type { Owner } from './owner.ts'
import { changing, mostTries, pauseOf } from './retries.ts'
import type { Saves } from './saves.ts'

export interface MovePlacesOptions {
  readonly node: string
  readonly table: SessionTable
  readonly owner: Owner
  readonly inbox: Pick<Inbox, 'ask'>
  readonly saves: Pick<Saves, 'save'>
  readonly askOwner: AskOwner
  readonly timers: Pick<Timers, 'sleep'>
}

/** Moves the place of a session to another one: at once if both have one owner, in a parcel if they have two. */
export function createMovePlaces(options: MovePlacesOptions): Sessions['move'] {
  const { node, table, owner, inbox, saves, askOwner, timers } = options

  /**
   * `taken`: the owner is silent, and the session is this node's own now. It is not asked first: it may only stand still, and
   * loses no session that anybody is in, since the place was lost before.
   */
  async function parcelOf(from: string, call: string, version: number, isLost: boolean, isTaken: boolean) {
    if (isLost && (await owner.takeFromSilent(from))) return 'taken'
    try {
      return await askOwner('give', from, call, version, isTaken)
    } catch (error) {
      // It fell silent meanwhile.
      if (error instanceof StoreError && isLost && (await owner.takeFromSilent(from))) return 'taken'
      throw error
    }
  }

  async function moveAway(move: Parameters<Sessions['move']>): Promise<boolean> {
    const [call, from, to, settled, version = newestVersion, gate = false, isLost = false, isTaken = false] = move
    for (let tries = 0; tries < mostTries; tries++) {
      const [source, target] = [await owner.ownerOf(from), await owner.ownerOf(to)]
      if (target === undefined) return false
      if (source === undefined) return true
      if (source !== target) {
        const parcel = await parcelOf(from, call, version, isLost, isTaken)
        if (parcel === 'taken') continue
        if (parcel === undefined) return true
        // Until it is in the other session's log, it has to be in this one's.
        await saves.save()
        const isThere = await askOwner('accept', to, call, parcel, { settled, version, gate })
        if (isThere) await askOwner('gave', from, call)
        return isThere
      }
      const isOwn = owner.isHere(from) && owner.isHere(to)
      if (target === node && isOwn) return table.move(...move)
      const frame: Frame = ['move', call, from, to, settled, version, gate, isLost, isTaken]
      const moved = target === node ? notHere : await inbox.ask(target, frame)
      if (moved !== notHere) return moved as boolean
      for (const id of [from, to]) owner.forgetRoute(id)
      await timers.sleep(pauseOf(tries))
    }
    throw changing()
  }

  return (...move) => {
    const [, from, to] = move
    if (from === to) return true
    if (owner.isHere(from) && owner.isHere(to)) return table.move(...move)
    return tagOfSessionId(from) === tagOfSessionId(to) && moveAway(move)
  }
}
