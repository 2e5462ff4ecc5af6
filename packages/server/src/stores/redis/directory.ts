import type { Directory, Row } from '../../cluster/directory.port.ts'
import { tagOfHash } from '../../ports/session-id.ts'
import type { Store } from './connection.ts'
import { indexKey, logKey, rowKey } from './keys.ts'

/** Which sessions there are, for one node. */
export function createRedisDirectory(store: Store, node: string): Directory {
  return {
    async row(sessionId) {
      const fields = (await store.run('row', [rowKey(sessionId)], [])) as string[]
      return fields.length === 0 ? undefined : rowOf(sessionId, fields)
    },
    async rowsOf(hash) {
      const all = (await store.run('rows', [indexKey(hash)], [`${store.prefix}rw:{${tagOfHash(hash)}}:o:`])) as string[]
      const rows: Row[] = []
      for (let i = 0; i < all.length; i += 16) rows.push(rowOf(all[i] ?? '', all.slice(i + 1, i + 16)))
      return rows
    },
    async claim(sessionId, fence, by) {
      const args = by === undefined ? [node, fence] : [node, fence, by.origin ?? '', by.freshFence]
      const reply = await store.run('claim', [rowKey(sessionId), logKey(sessionId)], args)
      const [next, state, isWhole, entries] = reply
      if (next === undefined) return undefined
      if (next === '') return 'gone'
      if (next === 'unsure') return 'unsure'
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
    masters: store.masters,
    masterOf: store.masterOf,
    async say(marker, word, { isForced, serves, dead = [] } = {}) {
      const args = [node, word, isForced ? '1' : '', serves ? '1' : '', ...dead]
      const all = (await store.run('written', [marker], args)) as string[]
      return new Map(
        Array.from({ length: all.length / 2 }, (_, i) => [all[2 * i] ?? '', all[2 * i + 1] ?? ''] as const),
      )
    },
    said: createSaid(store, node),
    async maker(marker, dead = '') {
      const [maker] = (await store.run('maker', [marker], [node, dead])) as string[]
      return maker
    },
    async made(marker) {
      await store.run('maker', [marker], ['', ''])
    },
  }
}

/** All who ask in one tick share a question. What any of them read before, it was answered before the question is sent. */
function createSaid(store: Pick<Store, 'run'>, node: string): Directory['said'] {
  const asked = new Map<string, Promise<string | null>>()
  async function ask(marker: string): Promise<string | null> {
    const [word = null] = (await store.run('said', [marker], [node])) as string[]
    return word
  }
  return (marker) => {
    const known = asked.get(marker)
    if (known !== undefined) return known
    const answer = ask(marker)
    asked.set(marker, answer)
    process.nextTick(() => asked.delete(marker))
    return answer
  }
}

/** In the order of `row.lua`. */
function rowOf(sessionId: string, fields: readonly string[]): Row {
  const [owner = '', fence = '', socket, device = '', isNotOf = '', extended, openedAt, expiresAt, appVersion = ''] =
    fields
  const [last, turn, hash = '', unsure, awaited = '', can = ''] = fields.slice(9)
  return {
    ...{ sessionId, owner, fence, device, isNotOf, appVersion, hash, can },
    turn: Number(turn),
    hasSocket: socket === '1',
    extended: extended === '1',
    openedAt: Number(openedAt),
    expiresAt: expiresAt === '' ? Number.POSITIVE_INFINITY : Number(expiresAt),
    hasLast: last === '1',
    isUnsure: unsure === '1',
    awaitedMs: awaited === '' ? undefined : Number(awaited),
  }
}
