import type { Timers } from '../ports/clock.ts'
import type { Missing, MissingSessions } from '../ports/missing-sessions.ts'
import { tagOfSessionId } from '../ports/session-id.ts'
import type { Directory, Master } from './directory.port.ts'

export interface MakingUpOptions {
  readonly directory: Pick<Directory, 'masters' | 'masterOf' | 'maker' | 'made'>
  readonly node: string
  /** Whether it is certain that a node does not serve any more. */
  readonly isDead: (node: string) => Promise<boolean>
  /** Looks at each master, and notes where everybody has written what it owns. */
  readonly look: () => Promise<void>
  /** Whether everybody has, on the master of this name. */
  readonly isComplete: (master: string) => boolean
  readonly timers: Pick<Timers, 'sleep'>
}

export interface MakingUp extends MissingSessions {
  /** This node has yet to learn whether something is missing. */
  readonly isStarting: boolean
}

const againMs = 100
/** It takes nodes 1 s to write again what they own, and about 6 s to be found dead. */
const mostWaits = 100

/**
 * Which of the nodes that start makes up the sessions of a server that was emptied: the first one that writes there. If it
 * dies, another one takes that over. Where a node serves that has written again what it owns, nobody has to.
 */
export function createMakingUp({ directory, node, isDead, look, isComplete, timers }: MakingUpOptions): MakingUp {
  const takenOver = new Set<string>()
  let mine: readonly Master[] = []
  let isStarting = true

  async function makerOf({ marker }: Master): Promise<string | undefined> {
    const maker = await directory.maker(marker)
    if (maker === undefined || maker === node || !(await isDead(maker))) return maker
    takenOver.add(marker)
    return directory.maker(marker, maker)
  }

  /** Answers whether nobody has to make up anything. */
  async function areAllMade(): Promise<boolean> {
    await look()
    const masters = await directory.masters()
    const makers = await Promise.all(masters.map(makerOf))
    mine = masters.filter((_, i) => makers[i] === node)
    return makers.every((maker) => maker === undefined)
  }

  async function made(): Promise<void> {
    await Promise.all(mine.map(({ marker }) => directory.made(marker)))
  }

  function missing(): Missing {
    const names = new Set(mine.map(({ name }) => name))
    return {
      isOf: (id) => names.has(directory.masterOf(tagOfSessionId(id) ?? '')),
      wasBegun: mine.some(({ marker }) => takenOver.has(marker)),
    }
  }

  return {
    get isStarting() {
      return isStarting
    },
    async next() {
      for (let waits = 0; !(await areAllMade()); await timers.sleep(againMs)) {
        if (mine.length === 0) continue
        if (mine.every(({ name }) => isComplete(name))) return missing()
        // A node that lives all the time, and wrote nothing, is cut from Redis and serves: the sessions are its own.
        if (++waits > mostWaits) await made()
      }
      isStarting = false
      return undefined
    },
    made,
  }
}
