import type { Participant } from '../call/call.ts'
import type { Timers } from '../ports/clock.ts'
import { isLast, type Push } from '../ports/push.ts'
import type { Sessions } from '../ports/sessions.ts'
import type { Row } from './directory.port.ts'
import { createFinals, type Finals } from './finals.ts'
import type { Inbox } from './inbox.ts'
import { createLiveSessions } from './live-sessions.ts'
import type { Living } from './living.ts'
import { createParticipantRows, type ParticipantRows, type ParticipantRowsOptions } from './participant-rows.ts'
import { changing, mostTries, pauseOf } from './retries.ts'
import type { Saves } from './saves.ts'

export interface ParticipantSessionsOptions extends ParticipantRowsOptions {
  readonly inbox: Pick<Inbox, 'ask'>
  readonly living: Living
  readonly append: Sessions['append']
  readonly settle: Saves['settle']
  readonly timers: Timers
}

/** All sessions of one participant, which several nodes may own. */
export type ParticipantSessions = Finals & Pick<Sessions, 'seen' | 'appendRung' | 'appendLive' | 'liveOf' | 'mayRing'>

export function createParticipantSessions(options: ParticipantSessionsOptions): ParticipantSessions {
  const { node, table, owner, inbox, living, settle, append, timers } = options
  const rows = createParticipantRows(options)
  const live = createLiveSessions({ node, table, rows, owner, living })
  const finals = createFinals({ node, table, rows, owner, inbox, settle })
  const appendOnce = createAppendRung(options, rows)

  async function liveOf(
    participant: Participant,
    at = Number.POSITIVE_INFINITY,
    began = Number.NEGATIVE_INFINITY,
  ): Promise<readonly string[]> {
    const all = await live(participant)
    return all.filter(({ openedAt, expiresAt }) => openedAt <= at && expiresAt > began).map((each) => each.sessionId)
  }

  /** Once more if the store had lost rows when this read them. */
  async function toAll(participant: Participant, deliver: () => Promise<unknown>): Promise<void> {
    const since = timers.monotonic()
    await deliver()
    if (!(await rows.areAll(participant, since))) await deliver()
  }

  return {
    ...finals,
    liveOf,
    async appendLive(participant, push, at, began) {
      let count = 0
      await toAll(participant, async () => {
        const ids = await liveOf(participant, at, began)
        await Promise.all(ids.map((id) => append(id, push)))
        count = ids.length
      })
      return count
    },
    async mayRing(participant, began, needs) {
      const all = await live(participant)
      return all.some(({ expiresAt, can }) => expiresAt > began && (needs === undefined || can.includes(needs)))
    },
    async seen(participant) {
      return (await live(participant)).map(({ expiresAt: _, can: __, ...seen }) => seen)
    },
    async appendRung(participant, push, except) {
      await toAll(participant, () => appendOnce(participant, push, except))
      if (isLast(push)) await finals.passOn(participant, push)
    },
  }
}

/** Appends a push to each session of a participant where its call rings. */
function createAppendRung({ table, owner, inbox, timers }: ParticipantSessionsOptions, rows: ParticipantRows) {
  const { isFree, isHere } = owner

  /** Answers the sessions that these owners did not have. */
  async function askOwners(theirs: readonly Row[], ...how: Parameters<Sessions['appendRung']>): Promise<string[]> {
    const owners = Map.groupBy(theirs, (row) => row.owner)
    const missed = await Promise.all(
      Array.from(owners, ([at, rows]) => {
        const ids = rows.map(({ sessionId }) => sessionId)
        return inbox.ask(at, ['rung', ...how, ids]) as Promise<string[]>
      }),
    )
    return missed.flat()
  }

  return async (participant: Participant, push: Push, except: readonly string[]): Promise<void> => {
    table.appendRung(participant, push, except)
    let left: ReadonlySet<string> | undefined
    for (let tries = 0; tries < mostTries; tries++) {
      const elsewhere = (await rows.elsewhere(participant)).filter(({ sessionId }) => left?.has(sessionId) ?? true)
      const free = elsewhere.filter(isFree)
      const theirs = elsewhere.filter((row) => !isFree(row))
      // This node takes over the sessions that a dead node has left. That may have to wait, and the others do not wait for it.
      const claims = Promise.all(free.map(owner.claim))
      const [missed] = await Promise.all([askOwners(theirs, participant, push, except), claims])
      // Some may have come here since they were looked for.
      table.appendRung(participant, push, except)
      if (elsewhere.length === 0) return
      // Another node was faster.
      const taken = free.filter((row) => !isHere(row.sessionId))
      // They went to another node, or are over, since they were looked for.
      left = new Set([...missed, ...taken.map(({ sessionId }) => sessionId)])
      if (left.size === 0) return
      await timers.sleep(pauseOf(tries))
    }
    throw changing()
  }
}
