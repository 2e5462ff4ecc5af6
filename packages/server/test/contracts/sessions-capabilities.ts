import { describe, expect, test } from 'bun:test'
import type { Push } from '../../src/ports/push.ts'
import { openReady, somebody } from '../../src/ports/sessions.fixture.ts'
import { comeBack, numbersOf, pushes, relays, type SessionsHarness, seqsOf } from './session-parts.ts'

const { notice, stop } = pushes
const needing = (push: Push): Push => ({ ...push, needs: 'take' })

/** Pushes for clients that listed a capability [EXT6]. */
export function registerCapabilityRules(given: () => SessionsHarness): void {
  const sessions = () => given().sessions

  describe('what only some clients understand', () => {
    test('[EXT6] only sessions that listed it are told, and the others get no number for it', async () => {
      const able = await openReady(sessions(), { can: ['transfer', 'take'] })
      const unable = await openReady(sessions(), { can: ['transfer'] })
      const older = await openReady(sessions())
      const base = await openReady(sessions(), { extended: false })
      const everybody = [able, unable, older, base]
      for (const { id } of everybody) {
        await sessions().append(id, needing(notice('c', 3, 1)))
        await relays(sessions(), id, 'c', [2])
      }
      await given().settled()
      expect(everybody.map(({ socket }) => numbersOf(socket))).toEqual([[1, 2], [2], [2], [2]])
      expect([able, unable, older].map(({ socket }) => seqsOf(socket))).toEqual([[1, 2], [1], [1]])
    })

    test('[GROUP1] whether a call would ring at somebody, at a client that understands it', async () => {
      const participant = somebody()
      const may = async (began = 10, needs?: 'group') => sessions().mayRing(participant, began, needs)
      expect(await may()).toBe(false)
      const one = await openReady(sessions(), { participant, expiresAt: 20, can: ['take'] })
      await given().settled()
      expect([await may(), await may(20), await may(10, 'group')]).toEqual([true, false, false])
      const other = await openReady(sessions(), { participant, expiresAt: 15, can: ['transfer', 'group'] })
      await given().settled()
      expect([await may(10, 'group'), await may(15, 'group')]).toEqual([true, false])
      for (const { id, socket } of [one, other]) await sessions().detach(id, socket, true, 0)
      await given().settled()
      expect(await may()).toBe(false)
    })

    test('[GROUP1] [ORD2] a call that rings again is told to clients that know groups, and others are told nothing', async () => {
      const ring = (version: number, n: number) => pushes.ringing('c', version, n)
      const able = await openReady(sessions(), { can: ['group'] })
      const unable = await openReady(sessions(), { can: ['take'] })
      const base = await openReady(sessions(), { extended: false })
      const everybody = [able, unable, base]
      for (const { id, identity } of everybody) {
        await sessions().append(id, ring(2, 1))
        await sessions().append(id, ring(3, 2))
        await sessions().appendRung(identity.participant, stop('c', 4, 3), [])
        await sessions().append(id, ring(5, 4))
        await sessions().appendRung(identity.participant, stop('c', 6, 5), [])
      }
      await given().settled()
      expect(everybody.map(({ socket }) => numbersOf(socket))).toEqual([
        [1, 3, 4, 5],
        [1, 3],
        [1, 3],
      ])
    })

    test('[EXT6] a push that a session skipped does not pass for the version that it was told', async () => {
      const seen = await openReady(sessions())
      expect(await sessions().append(seen.id, needing(stop('c', 4, 1)))).toBe('dropped')
      expect(await sessions().append(seen.id, stop('c', 4, 2))).toBe('sent')
    })

    test('[EXT6] each resume says anew what the client understands', async () => {
      const first = await openReady(sessions(), { can: ['take'] })
      const turns = [undefined, ['take'], ['group'], undefined, ['take']] as const
      let seq = 0
      for (const [turn, can] of turns.entries()) {
        const { can: _, ...identity } = first.identity
        const back = await comeBack(sessions(), { ...first, identity: can ? { ...identity, can } : identity }, seq)
        const told = await sessions().append(first.id, needing(notice(`c${turn}`, 1, turn)))
        expect(told).toBe(can?.[0] === 'take' ? 'sent' : 'dropped')
        if (told === 'sent') seq++
        await given().settled()
        expect(back && numbersOf(back.socket)).toEqual(told === 'sent' ? [turn] : [])
      }
    })

    test('[EXT6] [PLACE2] what waits in a place is not for a session that does not understand it', async () => {
      const participant = somebody()
      const before = await openReady(sessions(), { participant, can: ['take'] })
      await sessions().apply(before.id, { call: 'c', version: 2, place: 'settled' })
      await sessions().detach(before.id, before.socket, false, 0)
      await sessions().append(before.id, needing(notice('c', 3, 1)))
      await relays(sessions(), before.id, 'c', [2])
      const after = await openReady(sessions(), { participant })
      await sessions().move('c', before.id, after.id, true, 4)
      await given().settled()
      expect(numbersOf(after.socket)).toEqual([2])
    })
  })
}
