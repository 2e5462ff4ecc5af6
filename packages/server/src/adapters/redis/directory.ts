import type { SessionIdentity } from '../../ports/sessions.ts'
import { StoreError } from '../../ports/store-error.ts'
import { hasLast, type Session } from '../../session/session.ts'
import { participantHash, tagOfHash, tagOfSessionId } from '../../session/session-id.ts'
import type { Completeness } from './completeness.ts'
import type { Store } from './connection.ts'

/** What the directory says of a session: every node reads it, its owner alone writes it. */
export interface Row {
  readonly sessionId: string
  /** The run of a node that has the session in memory; '' where a node that stopped has left it to whoever needs it. */
  readonly owner: string
  /** How often the owner has changed. */
  readonly fence: string
  readonly hasSocket: boolean
  readonly device: string
  /** Of one whose device is not known any more: which one it was not; '' where nothing is known. */
  readonly isNotOf: string
  readonly extended: boolean
  readonly openedAt: number
  readonly expiresAt: number
  readonly appVersion: string
  /** It has yet to hear how a call ended. */
  readonly hasLast: boolean
  /** Which of the sockets that came back has it: of several at once the newest [RES1]. */
  readonly turn: string
  /** Whose it is. */
  readonly hash: string
  /** A call rings there, and its client does not answer pings [PING1]. */
  readonly isUnsure: boolean
  /** Milliseconds within which the service expects its client back, if it closed the last socket with 1012 [PEER1]. */
  readonly awaitedMs: number | undefined
}

/** A copy of a session, for the node that takes it over. */
export interface Copy {
  readonly fence: number
  readonly state: string
  /** False: a server that took over, or began again, may have lost the end of it. */
  readonly isWhole: boolean
  readonly entries: readonly string[]
}

export interface Directory {
  /** Undefined where there is no such session. */
  row(sessionId: string): Promise<Row | undefined>
  /**
   * The rows of the sessions of a participant, in the order in which they were written first: those that are there. Where
   * the store was emptied, some may be missing.
   */
  rowsOf(hash: string): Promise<readonly Row[]>
  /**
   * True where those that were just read are all, false where they have to be read again. `since`: when that read began; see
   * `Completeness`.
   */
  areAll(hash: string, since: number): Promise<boolean>
  /**
   * Takes a session over, if its fence is still that; its owner of before can write nothing more of it. `gone`: there is
   * nothing to go on with. Undefined where another one was faster.
   */
  claim(sessionId: string, fence: string): Promise<Copy | 'gone' | undefined>
  /** Nobody can go on with it: it is as if it had never been. */
  forget(sessionId: string, fence: number): Promise<void>
}

/** Nodes that live write again what they own in less, in ms. */
const soonMs = 300

/** `isWhole`: see `Completeness`. */
export function createDirectory(store: Store, node: string, isWhole: Completeness['isWhole']): Directory {
  async function rowOfSession(sessionId: string): Promise<Row | undefined> {
    const fields = (await store.run('row', [rowKey(sessionId)], [])) as string[]
    return fields.length === 0 ? undefined : rowOf(sessionId, fields)
  }

  async function rowsOf(hash: string): Promise<Row[]> {
    const all = (await store.run('rows', [indexKey(hash)], [`${store.prefix}rw:{${tagOfHash(hash)}}:o:`])) as string[]
    const rows: Row[] = []
    for (let i = 0; i < all.length; i += 15) rows.push(rowOf(all[i] ?? '', all.slice(i + 1, i + 15)))
    return rows
  }

  return {
    async row(sessionId) {
      const tag = tagOfSessionId(sessionId)
      if (tag === undefined) return undefined
      const since = performance.now()
      const row = await rowOfSession(sessionId)
      return row !== undefined || (await isWhole(tag, since)) ? row : rowOfSession(sessionId)
    },
    async rowsOf(hash) {
      const isSure = isWhole(tagOfHash(hash), performance.now(), soonMs).catch((error) => {
        if (!(error instanceof StoreError)) throw error
        return false
      })
      const rows = await rowsOf(hash)
      return (await isSure) ? rows : rowsOf(hash)
    },
    areAll: (hash, since) => isWhole(tagOfHash(hash), since),
    async claim(sessionId, fence) {
      const reply = await store.run('claim', [rowKey(sessionId), logKey(sessionId)], [node, fence])
      const [next, state, isWhole, entries] = reply
      if (next === undefined) return undefined
      if (next === '') return 'gone'
      return {
        fence: Number(next),
        state: String(state),
        isWhole: isWhole === 1,
        entries: entries as unknown as string[],
      }
    },
    async forget(sessionId, fence) {
      // The index is cleared by who reads it next.
      const keys = [rowKey(sessionId), logKey(sessionId), rowKey(sessionId)]
      await store.run('save', keys, [node, fence, 'gone', '', 0, '', 0, 0])
    },
  }
}

function rowOf(sessionId: string, fields: readonly string[]): Row {
  const [owner = '', fence = '', socket, device = '', isNotOf = '', extended, openedAt, expiresAt, appVersion = ''] =
    fields
  const [last, turn = '', hash = '', unsure, awaited = ''] = fields.slice(9)
  return {
    ...{ sessionId, owner, fence, device, isNotOf, appVersion, turn, hash },
    hasSocket: socket === '1',
    extended: extended === '1',
    openedAt: Number(openedAt),
    expiresAt: expiresAt === '' ? Number.POSITIVE_INFINITY : Number(expiresAt),
    hasLast: last === '1',
    isUnsure: unsure === '1',
    awaitedMs: awaited === '' ? undefined : Number(awaited),
  }
}

export const rowKey = (sessionId: string) => `rw:{${tagOfSessionId(sessionId)}}:o:${sessionId}`
export const logKey = (sessionId: string) => `rw:{${tagOfSessionId(sessionId)}}:e:${sessionId}`
export const indexKey = (hash: string) => `rw:{${tagOfHash(hash)}}:i:${hash}`

/** What the row says of a session; of what never changes only where it is written for the first time. */
export function rowFields(session: Session, isWhole: boolean): (string | number)[] {
  const { identity, openedAt, sink, turn } = session
  const { extended, expiresAt = '', appVersion } = identity
  const now = [
    'xp',
    expiresAt,
    'av',
    appVersion ?? '',
    'k',
    sink === undefined ? '0' : '1',
    'w',
    hasLast(session) ? '1' : '0',
    't',
    turn,
    'u',
    session.unsure === undefined ? '0' : '1',
    'b',
    session.awaitedMs ?? '',
  ]
  if (!isWhole) return now
  const about = ['d', deviceField(identity), 'n', identity.isNotOf ?? '', 'x', extended ? '1' : '0', 'op', openedAt]
  return [...now, ...about, 'ph', participantHash(identity.participant)]
}

/** Names what its owner had come to when a session was seen: how often it changed its owner, and whose socket it has. */
export function stampOf({ fence, turn }: Pick<Row | Session, 'fence' | 'turn'>): string {
  return `${fence}.${turn}`
}

/** A device as it is compared: one without a name, one that is not known any more, or a name. */
export function deviceField({ deviceId }: Pick<SessionIdentity, 'deviceId'>): string {
  if (deviceId === undefined) return ''
  return deviceId === null ? 'n' : `s${deviceId}`
}

/** The device that a field means. */
export function deviceOf(field: string): string | null | undefined {
  if (field === '') return undefined
  return field === 'n' ? null : field.slice(1)
}
