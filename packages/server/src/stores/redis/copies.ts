import { Cluster } from 'ioredis'
import type { Copies, Refusal, SessionWrite } from '../../cluster/copies.port.ts'
import type { RowFields } from '../../cluster/directory.port.ts'
import { tagOfSessionId } from '../../ports/session-id.ts'
import type { Store } from './connection.ts'
import { indexKey, logKey, rowKey } from './keys.ts'
import type { Reply } from './scripts.ts'

/** The copies of the sessions of a node. */
export function createRedisCopies(store: Store, node: string): Copies {
  const isCluster = store.client instanceof Cluster
  return {
    // A script writes what is in one slot.
    partOf: (sessionId) => (isCluster ? (tagOfSessionId(sessionId) ?? '') : ''),
    async save(writes) {
      return refusals(await store.run('save', writes.flatMap(keysOf), [node, ...writes.flatMap(argsOf)]))
    },
    async renew(sessions) {
      const keys = sessions.flatMap(({ sessionId }) => [rowKey(sessionId), logKey(sessionId)])
      return refusals(await store.run('renew', keys, [node, ...sessions.flatMap(({ fence, ttlMs }) => [fence, ttlMs])]))
    },
    async areThere(sessions) {
      // A key that is named twice counts twice.
      const keys = sessions.flatMap(({ sessionId, hash, hasLog }) => [
        ...[rowKey(sessionId), indexKey(hash)],
        ...(hasLog ? [logKey(sessionId)] : []),
      ])
      return (await store.exists(keys)) === keys.length
    },
    isConnected: () => store.client.status === 'ready',
  }
}

function refusals(reply: Reply): Refusal[] {
  const all: Refusal[] = []
  for (let i = 0; i < reply.length; i += 2) {
    const [index, why] = [Number(reply[i]), reply[i + 1] as Refusal['why']]
    if (why !== 'earlier') all.push({ index, why })
    else {
      all.push({ index, why, state: String(reply[i + 2]), lastEntry: String(reply[i + 3]) })
      i += 2
    }
  }
  return all
}

/** The index changes with the first and the last that is written. */
function keysOf({ sessionId, hash, what }: SessionWrite): string[] {
  const row = rowKey(sessionId)
  return [row, logKey(sessionId), what === 'part' ? row : indexKey(hash)]
}

function argsOf({ fence, what, row, state, newOwner, ttlMs, log }: SessionWrite): (string | number)[] {
  const about = row === undefined ? [] : fieldsOf(row, what !== 'part')
  if (row !== undefined) about.push('c', state)
  if (newOwner !== undefined) about.push('o', newOwner)
  const { isWhole, dropped, added } = log
  return [fence, what, ttlMs ?? '', about.length, ...about, isWhole ? '1' : '', dropped, added.length, ...added]
}

/** Of what never changes only where it is written for the first time. */
function fieldsOf(row: RowFields, isFirst: boolean): (string | number)[] {
  const { expiresAt, appVersion, hasSocket, hasLast, turn, isUnsure, awaitedMs, can } = row
  const fields: (string | number)[] = ['xp', Number.isFinite(expiresAt) ? expiresAt : '', 'av', appVersion]
  fields.push('k', hasSocket ? '1' : '0', 'w', hasLast ? '1' : '0', 't', turn)
  fields.push('u', isUnsure ? '1' : '0', 'b', awaitedMs ?? '', 'cn', can)
  if (!isFirst) return fields
  fields.push('d', row.device, 'n', row.isNotOf, 'x', row.extended ? '1' : '0', 'op', row.openedAt, 'ph', row.hash)
  return fields
}
