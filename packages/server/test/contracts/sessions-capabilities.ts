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
