import { describe, expect, test } from 'bun:test'
import type { Participant } from '../../src/call/call.ts'
import { openReady, type Seen, somebody, stepsOf } from '../../src/ports/sessions.fixture.ts'
import { comeBack, numbersOf, pushes, relays, type SessionsHarness } from './session-parts.ts'

const { state, final, relay, media, peer } = pushes

/** What peers see of each other. */
export function registerPeerRules(given: () => SessionsHarness): void {
  const sessions = () => given().sessions
  const drop = ({ id, socket }: Seen, at = 0) => sessions().detach(id, socket, false, at)

  describe('what a peer sends, as it said last', () => {
    async function holder(participant: Participant, extended = true): Promise<Seen> {
      const seen = await openReady(sessions(), { participant, extended })
      await stepsOf(sessions()).hold(seen.id, 'c', true)
      return seen
    }

    test('[MEDIA1] who takes the place is told the last one, once; a base session none, and it is remembered there, too', async () => {
      for (const extended of [true, false]) {
        const participant = somebody()
        const seen = await holder(participant, extended)
        const results = []
        for (const n of [1, 2]) results.push(await sessions().append(seen.id, media('c', n)))
        expect(results).toEqual(extended ? ['sent', 'sent'] : ['dropped', 'dropped'])
        await given().settled()
        await drop(seen)
        const taker = await openReady(sessions(), { participant })
        for (let times = 0; times < 2; times++) await sessions().move('c', seen.id, taker.id, true)
        await given().settled()
        expect(numbersOf(seen.socket)).toEqual(extended ? [1, 2] : [])
        expect(numbersOf(taker.socket)).toEqual([2])
      }
    })

    test('[MEDIA1] [RES1] who resumes is told it again, unless it is among what it missed', async () => {
      const seen = await holder(somebody())
      await sessions().append(seen.id, media('c', 1))
      await given().settled()
      await drop(seen)
      const back = await comeBack(sessions(), seen, 1)
      await given().settled()
      expect(numbersOf(back!.socket)).toEqual([1])
      await drop(back!)
      await sessions().append(seen.id, media('c', 2))
      const again = await comeBack(sessions(), seen, 2)
      await given().settled()
      expect(numbersOf(again!.socket)).toEqual([2])
      await stepsOf(sessions()).release(seen.id, 'c')
      await drop(again!)
      const later = await comeBack(sessions(), seen, 3)
      await given().settled()
      expect(numbersOf(later!.socket)).toEqual([])
    })

    test('[MEDIA1] [REL2] at a gate it waits in its turn, and stays what it is', async () => {
      for (const extended of [true, false]) {
        const seen = await openReady(sessions(), { extended })
        await stepsOf(sessions()).hold(seen.id, 'c', true, true)
        await relays(sessions(), seen.id, 'c', [2])
        await sessions().append(seen.id, media('c', 3))
        await relays(sessions(), seen.id, 'c', [4])
        await stepsOf(sessions()).openGate(seen.id, 'c', [relay('c', 0), media('c', 1)])
        await given().settled()
        expect(numbersOf(seen.socket)).toEqual(extended ? [0, 1, 2, 3, 4] : [0, 2, 4])
      }
    })
  })

  test('[PEER1] the absence of the other side goes beside what else its version tells, each once, and not after the end', async () => {
    for (const extended of [true, false]) {
      const { id, socket } = await openReady(sessions(), { extended })
      await stepsOf(sessions()).hold(id, 'c', true)
      for (const push of [state('c', 3, 1), peer('c', 3, 2), peer('c', 3, 3), peer('c', 2, 4), state('c', 4, 5)])
        await sessions().append(id, push)
      for (const push of [peer('c', 5, 6), final('c', 6, 7), peer('c', 7, 8)]) await sessions().append(id, push)
      await given().settled()
      expect(numbersOf(socket)).toEqual(extended ? [1, 2, 5, 6, 7] : [1, 5, 7])
    }
  })
}
