import { type Participant, participantKey } from '../call/call.ts'
import type { Push } from '../ports/push.ts'
import type { SessionIdentity, Sessions } from '../ports/sessions.ts'
import { goneSince, hasClient, type Session } from '../session/session.ts'
import type { SessionTable } from '../session/table.ts'
import type { Row } from './directory.port.ts'
import type { Inbox } from './inbox.ts'
import type { Owner } from './owner.ts'
import type { ParticipantRows } from './participant-rows.ts'
import { deviceField, deviceOf } from './rows.ts'
import type { Saves } from './saves.ts'

export interface FinalsOptions {
  readonly node: string
  readonly table: SessionTable
  readonly rows: ParticipantRows
  readonly owner: Owner
  readonly inbox: Pick<Inbox, 'ask'>
  readonly settle: Saves['settle']
}

/** Final notices that wait in sessions without a socket, for a newer session of the same device [WS4]. */
export interface Finals extends Pick<Sessions, 'owing' | 'collectFinals'> {
  /** A final notice came to such a session, and the newer one may have looked for notices before that. */
  passOn(participant: Participant, push: Push): Promise<void>
  /** The same for this node, which owns the newer session. */
  inherit(from: string, to: string, call: string): Promise<void>
}

export function createFinals({ node, table, rows, owner, inbox, settle }: FinalsOptions): Finals {
  const { isHere, isFree } = owner
  /** Where final notices came to wait, for a session that has yet to look. */
  const yetToLook = new WeakMap<Session, Set<string>>()

  /** Takes over sessions, and then those in which a notice came to wait meanwhile. */
  async function acquireAll(session: Session, due: readonly string[]): Promise<ReadonlySet<string>> {
    const acquired = new Set<string>()
    const missing = () => [...due, ...(yetToLook.get(session) ?? [])].filter((id) => !acquired.has(id))
    for (let ids = missing(); ids.length > 0; ids = missing()) {
      for (const id of ids) acquired.add(id)
      await Promise.all(ids.map((id) => owner.acquire(id)))
    }
    return acquired
  }

  async function collect(session: Session, identity: SessionIdentity): Promise<void> {
    const due = (await rows.all(identity.participant)).filter(
      (row) => isHere(row.sessionId) || (row.hasLast && isOfDevice(row, identity) && (!row.hasSocket || isFree(row))),
    )
    const acquired = await acquireAll(
      session,
      due.map(({ sessionId }) => sessionId),
    )
    const own = table.ofParticipant(participantKey(identity.participant)).map((each) => each.identity.sessionId)
    table.collectFrom(identity, [...new Set([...acquired, ...own])])
  }

  return {
    async passOn(participant, { call }) {
      const sources = table.detachedWithFinal(participant, call)
      if (sources.length === 0) return
      // A node that looks from now on finds the notice.
      await settle()
      const elsewhere = await rows.elsewhere(participant)
      for (const source of sources) {
        const { sessionId } = source.identity
        for (const row of elsewhere) {
          const isThere = () => table.detachedWithFinal(participant, call).some(hasId(sessionId))
          if (isFree(row) || !isForSession(source, row) || !isThere()) continue
          await inbox.ask(row.owner, ['inherit', sessionId, row.sessionId, call])
        }
      }
    },
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
    async owing(identity) {
      const due = (await rows.elsewhere(identity.participant)).filter(
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
      if (session !== undefined && hasClient(session)) await collect(session, identity)
    },
  }
}

const hasId =
  (sessionId: string) =>
  ({ identity }: Session) =>
    identity.sessionId === sessionId

/** Whether a notice that waits in a session is for a newer one of its device. */
function isForSession(source: Session, row: Row): boolean {
  const { deviceId, isNotOf } = source.identity
  if (!row.hasSocket || row.openedAt < goneSince(source)) return false
  return deviceId === undefined ? deviceOf(row.device) !== isNotOf : row.device === deviceField({ deviceId })
}

/** Whether a notice that waits in a session is for a client that comes back with this device. */
function isOfDevice({ device, isNotOf }: Row, identity: SessionIdentity): boolean {
  const own = deviceField(identity)
  return device === '' ? isNotOf !== (identity.deviceId ?? '') || isNotOf === '' : device === own
}
