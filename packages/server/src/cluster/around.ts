import { type Participant, participantKey } from '../call/call.ts'
import type { Timers } from '../ports/clock.ts'
import { isLast, type Push } from '../ports/push.ts'
import { participantHash } from '../ports/session-id.ts'
import type { SessionIdentity, Sessions } from '../ports/sessions.ts'
import { goneSince, isOpen, type Session, seenOf } from '../session/session.ts'
import type { SessionTable } from '../session/table.ts'
import type { Row } from './directory.port.ts'
import type { BelievedDirectory } from './directory.ts'
import type { Inbox } from './inbox.ts'
import type { Living } from './living.ts'
import type { Owner } from './owner.ts'
import { changing, mostTries, pauseOf } from './retries.ts'
import { deviceField, deviceOf } from './rows.ts'
import type { Saves } from './saves.ts'

export interface AroundOptions {
  readonly node: string
  readonly table: SessionTable
  readonly directory: BelievedDirectory
  readonly owner: Owner
  readonly inbox: Pick<Inbox, 'ask'>
  readonly living: Living
  readonly append: Sessions['append']
  readonly settle: Saves['settle']
  /** Another node has a session that this one takes for its own; `hasSocket`: with a socket of its own. */
  readonly onRefused: (session: Session, hasSocket: boolean) => void
  readonly timers: Timers
}

/** A session with a socket. */
export interface Live extends Pick<SessionIdentity, 'sessionId' | 'deviceId' | 'extended'> {
  readonly appVersion: string | null
  readonly openedAt: number
  readonly expiresAt: number
  readonly isUnsure: boolean
}

/** What concerns several sessions of one participant, whose owners may be several nodes. */
export type Around = Pick<Sessions, 'seen' | 'owing' | 'collectFinals' | 'appendRung' | 'appendLive' | 'liveOf'> & {
  live(participant: Participant): Promise<readonly Live[]>
  /** How a call ended may have come to a dead session of a device that is back at another node, and has looked [WS4]. */
  passOn(participant: Participant, push: Push): Promise<void>
  /** The same for this node, whose session the other one is. */
  inherit(from: string, to: string, call: string): Promise<void>
}

export function createAround(options: AroundOptions): Around {
  const { node, table, directory, owner, inbox, living, append, settle, onRefused, timers } = options
  const { isHere, isFree } = owner
  /** Where how a call ended came to wait, for a session that has yet to look [WS4]. */
  const yetToLook = new WeakMap<Session, Set<string>>()

  async function rowsOf(participant: Participant): Promise<readonly Row[]> {
    const rows = await directory.rowsOf(participantHash(participant))
    for (const row of rows) {
      letGoIfTaken(row)
      // The nodes that were remembered as their owners may be gone since.
      if (!isFree(row)) owner.noteRoute(row.sessionId, row.owner)
    }
    return rows
  }

  /** While this node stood still another one took the session: what came to it since is there. */
  function letGoIfTaken({ sessionId, owner: other, fence, hasSocket }: Row): void {
    const session = table.get(sessionId)
    if (session !== undefined && other !== node && Number(fence) > session.saving.fence) onRefused(session, hasSocket)
  }

  /** Those that are not this node's; what it owns itself it knows better than the directory. */
  async function rowsElsewhere(participant: Participant): Promise<readonly Row[]> {
    return (await rowsOf(participant)).filter(({ sessionId }) => !isHere(sessionId))
  }

  /** Oldest first. */
  async function live(participant: Participant): Promise<readonly Live[]> {
    const rows = await rowsOf(participant)
    const areStillFree = await Promise.all(rows.map(owner.isStillFree))
    const all: Live[] = []
    for (const [i, row] of rows.entries()) {
      const own = table.get(row.sessionId)
      if (own !== undefined) {
        if (isOpen(own)) all.push(liveOfSession(own))
      } else if (!row.hasSocket || row.owner === node || row.owner === '') continue
      else if (areStillFree[i]) leave(row)
      else if (await living.isThere(row.owner)) all.push(liveOfRow(row))
    }
    // The store may have lost what it knew of its own.
    const known = new Set(rows.map(({ sessionId }) => sessionId))
    for (const session of table.ofParticipant(participantKey(participant)))
      if (isOpen(session) && !known.has(session.identity.sessionId)) all.push(liveOfSession(session))
    return all.sort((one, other) => one.openedAt - other.openedAt)
  }

  /** What a dead node has left is taken over. */
  async function takeFree(rows: readonly Row[]): Promise<void> {
    await Promise.all(rows.filter(isFree).map(owner.claim))
  }

  /** Where its owner is not dead after all, it has to find that nothing rings there any more [INV4]. */
  function leave(row: Row): void {
    owner.claim(row).catch(() => {
      // Whoever looks next tries again.
    })
  }

  async function liveOf(
    participant: Participant,
    at = Number.POSITIVE_INFINITY,
    began = Number.NEGATIVE_INFINITY,
  ): Promise<readonly string[]> {
    const all = await live(participant)
    return all.filter(({ openedAt, expiresAt }) => openedAt <= at && expiresAt > began).map((each) => each.sessionId)
  }

  async function tellRung(participant: Participant, push: Push, except: readonly string[]): Promise<void> {
    table.appendRung(participant, push, except)
    let left: ReadonlySet<string> | undefined
    for (let tries = 0; tries < mostTries; tries++) {
      const rows = (await rowsElsewhere(participant)).filter(({ sessionId }) => left?.has(sessionId) ?? true)
      await takeFree(rows)
      // Some may have come here since they were looked for.
      table.appendRung(participant, push, except)
      if (rows.length === 0) return
      // Another node was faster.
      const taken = rows.filter((row) => isFree(row) && !isHere(row.sessionId)).map(({ sessionId }) => sessionId)
      const owners = Map.groupBy(
        rows.filter((row) => !isFree(row)),
        (row) => row.owner,
      )
      const missed = await Promise.all(
        Array.from(owners, ([at, theirs]) => {
          const ids = theirs.map(({ sessionId }) => sessionId)
          return inbox.ask(at, ['rung', participant, push, except, ids]) as Promise<string[]>
        }),
      )
      // They went to another node, or are over, since they were looked for.
      left = new Set([...missed.flat(), ...taken])
      if (left.size === 0) return
      await timers.sleep(pauseOf(tries))
    }
    throw changing()
  }

  async function passOn(participant: Participant, { call }: Push): Promise<void> {
    const isStillThere = (id: string) =>
      table.detachedWithFinal(participant, call).some(({ identity }) => identity.sessionId === id)
    const sources = table.detachedWithFinal(participant, call)
    if (sources.length === 0) return
    // A node that looks from now on finds the notice.
    await settle()
    const rows = await rowsElsewhere(participant)
    for (const source of sources) {
      for (const row of rows) {
        const isForIt = row.hasSocket && !isFree(row) && row.openedAt >= goneSince(source) && isDeviceOf(source, row)
        if (!isForIt || !isStillThere(source.identity.sessionId)) continue
        await inbox.ask(row.owner, ['inherit', source.identity.sessionId, row.sessionId, call])
      }
    }
  }

  return {
    live,
    liveOf,
    passOn,
    async inherit(from, to, call) {
      const newer = table.get(to)
      if (newer === undefined || table.knowsEnd(to, call)) return
      if (newer.hasLooked) {
        if (await owner.acquire(from)) table.inherit(from, to, call)
        return
      }
      // It may have read before this came to wait.
      const sources = yetToLook.get(newer) ?? new Set()
      yetToLook.set(newer, sources.add(from))
    },
    async appendLive(participant, push, at, began) {
      const tell = async () => {
        const live = await liveOf(participant, at, began)
        await Promise.all(live.map((id) => append(id, push)))
      }
      const since = timers.monotonic()
      await tell()
      if (!(await directory.areAll(participantHash(participant), since))) await tell()
    },
    async seen(participant) {
      return (await live(participant)).map(({ expiresAt: _, ...seen }) => seen)
    },
    async appendRung(participant, push, except) {
      const since = timers.monotonic()
      await tellRung(participant, push, except)
      if (!(await directory.areAll(participantHash(participant), since))) await tellRung(participant, push, except)
      if (isLast(push)) await passOn(participant, push)
    },
    async owing(identity) {
      const rows = await rowsElsewhere(identity.participant)
      const due = rows.filter(
        (row) => row.hasSocket && row.hasLast && row.device === deviceField(identity) && !isFree(row),
      )
      const owners = new Set(due.map((row) => row.owner))
      const theirs = await Promise.all([...owners].map((at) => inbox.ask(at, ['owing', identity]) as Promise<string[]>))
      return [...table.owing(identity), ...theirs.flat()]
    },
    async collectFinals(identity) {
      if (!isHere(identity.sessionId)) {
        const at = await owner.ownerOf(identity.sessionId)
        if (at !== undefined && at !== node) await inbox.ask(at, ['collect', identity])
        if (at !== node) return
      }
      const session = table.get(identity.sessionId)
      if (session === undefined) return
      const rows = await rowsOf(identity.participant)
      const due = rows
        .filter((row) => {
          return isHere(row.sessionId) || (row.hasLast && isOfDevice(row, identity) && (!row.hasSocket || isFree(row)))
        })
        .map(({ sessionId }) => sessionId)
      const acquired = new Set<string>()
      const missing = () => [...due, ...(yetToLook.get(session) ?? [])].filter((id) => !acquired.has(id))
      for (let ids = missing(); ids.length > 0; ids = missing()) {
        for (const id of ids) acquired.add(id)
        await Promise.all(ids.map((id) => owner.acquire(id)))
      }
      const own = table.ofParticipant(participantKey(identity.participant)).map((each) => each.identity.sessionId)
      table.collectFrom(identity, [...new Set([...acquired, ...own])])
    },
  }
}

function liveOfSession(session: Session): Live {
  const { expiresAt = Number.POSITIVE_INFINITY } = session.identity
  return { ...seenOf(session), expiresAt }
}

function liveOfRow({ sessionId, device, extended, appVersion, openedAt, expiresAt, isUnsure }: Row): Live {
  const version = appVersion === '' ? null : appVersion
  return { sessionId, deviceId: deviceOf(device), extended, appVersion: version, openedAt, expiresAt, isUnsure }
}

/** Whether what waits in a session is for the device of another one. */
function isDeviceOf({ identity: { deviceId, isNotOf } }: Session, row: Row): boolean {
  return deviceId === undefined ? deviceOf(row.device) !== isNotOf : row.device === deviceField({ deviceId })
}

/** Whether what a session left behind is for who comes back with this device [WS4]. */
function isOfDevice({ device, isNotOf }: Row, identity: SessionIdentity): boolean {
  const own = deviceField(identity)
  return device === '' ? isNotOf !== (identity.deviceId ?? '') || isNotOf === '' : device === own
}
