import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Copies, SessionWrite } from '../../src/cluster/copies.port.ts'
import type { Directory, RowFields } from '../../src/cluster/directory.port.ts'
import { newSessionId, participantHash } from '../../src/ports/session-id.ts'
import { somebody } from '../../src/ports/sessions.fixture.ts'

/** What each of several nodes has of one store, by the name of the node. */
export interface StoreOfCopies {
  of(node: string): { readonly copies: Copies; readonly directory: Pick<Directory, 'claim' | 'row'> }
  close(): Promise<void>
}

/** What every store of copies guarantees where owners of a session do not know of each other. */
export function registerCopiesContract(name: string, open: () => Promise<StoreOfCopies>): void {
  describe(`${name}: Copies`, () => {
    let store: StoreOfCopies
    beforeAll(async () => {
      store = await open()
    })
    afterAll(() => store.close())
    const ofNode = (node: string) => store.of(node)
    const save = (node: string, write: SessionWrite) => ofNode(node).copies.save([write])

    /** A session that the node `one` wrote under the first fence, and what the later owner `two` writes. */
    async function writtenByEarlier() {
      const writeOf = writesOf()
      const earlier = writeOf({ fence: 1, state: 'of one', added: ['first', 'last'] })
      expect(await save('one', earlier)).toEqual([])
      const all = writeOf({ fence: 2, state: 'of two', added: ['other'] })
      return { id: all.sessionId, writeOf, earlier, all, over: { ...all, what: 'over' } as const }
    }
    const shown = [{ index: 0, why: 'earlier', state: 'of one', lastEntry: 'last' }] as const

    test('[RES2] what an earlier owner wrote is shown to the later one, as often as it asks, and then written over', async () => {
      const { id, all, over } = await writtenByEarlier()
      expect(await save('two', all)).toEqual(shown)
      // Its reply may have been lost.
      expect(await save('two', all)).toEqual(shown)
      expect(await save('two', over)).toEqual([])
      expect(await save('two', all)).toEqual([])
      const claimed = await ofNode('three').directory.claim(id, '2')
      expect(claimed).toEqual({ fence: 3, state: 'of two', isWhole: true, entries: ['other'] })
    })

    test('[RES2] an earlier owner can write no more once the later one has been shown what it wrote', async () => {
      const { id, writeOf, earlier, all } = await writtenByEarlier()
      await save('two', all)
      expect(await save('one', earlier)).toEqual([{ index: 0, why: 'other' }])
      expect(await save('one', writeOf({ fence: 1, what: 'part' }))).toEqual([{ index: 0, why: 'other' }])
      expect(await ofNode('one').copies.renew([{ sessionId: id, fence: 1, ttlMs: 1_000 }])).toHaveLength(1)
      expect(await ofNode('three').directory.row(id)).toMatchObject({ owner: 'two', fence: '2', hasSocket: false })
    })

    test('[RES2] nobody goes on with the copy of an earlier owner as if it were whole', async () => {
      const { id, all } = await writtenByEarlier()
      await save('two', all)
      expect(await ofNode('three').directory.claim(id, '2')).toMatchObject({ state: 'of one', isWhole: false })
    })

    test('[RES2] who was shown a copy writes over no later one of an earlier owner', async () => {
      const { writeOf, over } = await writtenByEarlier()
      expect(await save('two', over)).toEqual(shown)
      const given = { ...writeOf({ fence: 3, state: 'of three' }), newOwner: 'two' }
      expect(await save('three', given)).toMatchObject([{ why: 'earlier' }])
    })

    test('[RES4] a session that nobody, or the same node, wrote is written at once', async () => {
      const writeOf = writesOf()
      expect(await save('one', writeOf({ fence: 1 }))).toEqual([])
      expect(await save('one', writeOf({ fence: 3 }))).toEqual([])
      expect(await save('two', writeOf({ fence: 2 }))).toEqual([{ index: 0, why: 'moved' }])
    })
  })
}

interface Wish {
  readonly fence: number
  readonly what?: SessionWrite['what']
  readonly state?: string
  readonly added?: readonly string[]
}

/** Writes of one session, each of them whole. */
function writesOf() {
  const participant = somebody()
  const sessionId = newSessionId(participant)
  const hash = participantHash(participant)
  const row: RowFields = {
    ...{ device: '', isNotOf: '', extended: true, openedAt: 0, hash, hasSocket: true, turn: 0, expiresAt: 0 },
    ...{ appVersion: '', hasLast: false, isUnsure: false, awaitedMs: undefined, can: '' },
  }
  return ({ fence, what = 'all', state = '', added = [] }: Wish): SessionWrite => ({
    ...{ sessionId, hash, fence, what, row, state, newOwner: undefined, ttlMs: 60_000 },
    log: { isWhole: true, dropped: 0, added },
  })
}
