import { describe, expect, test } from 'bun:test'
import type { Participant } from '../../src/call/call.ts'
import {
  createSocket,
  identityOf,
  openReady,
  type Seen,
  somebody,
  stepsOf,
  type Wish,
} from '../../src/ports/sessions.fixture.ts'
import { comeBack, numbersOf, pushes, relays, type SessionsHarness, seqsOf } from './session-parts.ts'

const { ringing, state, final, notice, relay } = pushes

/** What goes from one session to another: with a place, or as the notice of a call that is over. */
export function registerPlaceRules(given: () => SessionsHarness): void {
  const sessions = () => given().sessions
  const drop = ({ id, socket }: Seen, at = 0) => sessions().detach(id, socket, false, at)

  for (const extended of [false, true]) {
    describe(extended ? 'a place that an extended session leaves' : 'a place that a base session leaves', () => {
      async function holder(participant: Participant): Promise<Seen> {
        const seen = await openReady(sessions(), { participant, extended })
        await stepsOf(sessions()).hold(seen.id, 'c', true)
        return seen
      }

      test('[PLACE2] what waits about the call goes to the taker, in order, and nothing else', async () => {
        const participant = somebody()
        const seen = await holder(participant)
        await sessions().append(seen.id, state('c', 2, 1))
        await relays(sessions(), seen.id, 'other', [2])
        await relays(sessions(), seen.id, 'c', [3, 4])
        await drop(seen)
        await relays(sessions(), seen.id, 'c', [5])
        await sessions().append(seen.id, final('c', 4, 6))
        const taker = await openReady(sessions(), { participant, extended: false })
        await relays(sessions(), taker.id, 'c', [0])
        await sessions().move('c', seen.id, taker.id, true)
        await given().settled()
        expect(numbersOf(taker.socket)).toEqual([0, 1, 3, 4, 5, 6])
      })

      test('[TAKE1] nothing that the peer signalled goes to a session that takes a held place', async () => {
        const participant = somebody()
        const seen = await holder(participant)
        await relays(sessions(), seen.id, 'c', [3, 4])
        await sessions().append(seen.id, { ...notice('c', 4, 5), kind: 'peer' })
        expect(sessions().hasLeft(seen.id, 'c')).toBe(false)
        const taker = await openReady(sessions(), { participant })
        expect(await sessions().move('c', seen.id, taker.id, true, 6, false, false, true)).toBe(true)
        await given().settled()
        expect(sessions().hasLeft(seen.id, 'c')).toBe(true)
        expect(sessions().hasLeft(taker.id, 'c')).toBe(false)
        await relays(sessions(), taker.id, 'c', [7])
        await given().settled()
        expect(numbersOf(taker.socket)).toEqual(extended ? [5, 7] : [7])
      })

      test('[TAKE1] a session whose place is taken before it has heard that it had it does not get it', async () => {
        const participant = somebody()
        const [late, taker] = await Promise.all([
          openReady(sessions(), { participant }),
          openReady(sessions(), { participant }),
        ])
        expect(sessions().hasLeft(late.id, 'c')).toBe(false)
        expect(await sessions().apply(taker.id, { call: 'c', version: 6, place: 'settled' })).toBeDefined()
        expect(await sessions().move('c', late.id, taker.id, true, 6, false, false, true)).toBe(true)
        await given().settled()
        await sessions().apply(late.id, { call: 'c', version: 5, place: 'settled' })
        await given().settled()
        expect([late, taker].map(({ id }) => sessions().hasLeft(id, 'c'))).toEqual([true, false])
        await sessions().apply(late.id, { call: 'c', version: 7, place: 'settled' })
        expect(sessions().hasLeft(late.id, 'c')).toBe(false)
      })

      test('[EXT1] the taker numbers what it gets as its own', async () => {
        const participant = somebody()
        const seen = await holder(participant)
        await sessions().append(seen.id, state('c', 2, 1))
        await relays(sessions(), seen.id, 'c', [2])
        await drop(seen)
        const taker = await openReady(sessions(), { participant })
        await relays(sessions(), taker.id, 'd', [8, 9])
        await sessions().move('c', seen.id, taker.id, true)
        await given().settled()
        expect(numbersOf(taker.socket)).toEqual([8, 9, 1, 2])
        expect(seqsOf(taker.socket)).toEqual([1, 2, 3, 4])
        expect(taker.socket.told[2]?.version).toBe(2)
      })

      test('[PLACE1] it rings at nobody: the call was answered there', async () => {
        const participant = somebody()
        for (const isLost of [true, false]) {
          const seen = await openReady(sessions(), { participant, extended })
          await sessions().append(seen.id, ringing('c', 1, 1))
          await stepsOf(sessions()).hold(seen.id, 'c', true)
          await relays(sessions(), seen.id, 'c', [2])
          if (isLost) await drop(seen)
          const taker = await openReady(sessions(), { participant })
          await sessions().move('c', seen.id, taker.id, true)
          await given().settled()
          expect(numbersOf(taker.socket)).toEqual([2])
          expect(await sessions().holdsAny(taker.id)).toBe(true)
          await stepsOf(sessions()).release(taker.id, 'c')
          expect(await sessions().inCall(taker.id)).toBe(false)
          expect(await sessions().holdsAny(seen.id)).toBe(false)
        }
      })

      test('[ORD3] the taker is told no version that it knows', async () => {
        const participant = somebody()
        const seen = await holder(participant)
        await sessions().append(seen.id, state('c', 2, 1))
        await sessions().append(seen.id, state('c', 4, 2))
        await drop(seen)
        const taker = await openReady(sessions(), { participant })
        await sessions().append(taker.id, state('c', 3, 3))
        await sessions().move('c', seen.id, taker.id, true)
        await given().settled()
        expect(numbersOf(taker.socket)).toEqual([3, 2])
      })

      test('[ORD3] a taker that is not ready yet gets it when it is', async () => {
        const participant = somebody()
        const seen = await holder(participant)
        await relays(sessions(), seen.id, 'c', [1, 2])
        await drop(seen)
        const identity = identityOf({ participant })
        const socket = createSocket()
        await sessions().open(identity, socket, 0)
        await sessions().move('c', seen.id, identity.sessionId, true)
        await given().settled()
        expect(socket.told).toEqual([])
        await sessions().ready(identity.sessionId)
        await given().settled()
        expect(numbersOf(socket)).toEqual([1, 2])
      })

      test('[PLACE2] from a session that is still there it goes once, and that one tells its own as before', async () => {
        const participant = somebody()
        const identity = identityOf({ participant, extended })
        const socket = createSocket()
        await sessions().open(identity, socket, 0)
        const { sessionId } = identity
        await stepsOf(sessions()).hold(sessionId, 'c', false)
        await relays(sessions(), sessionId, 'c', [1])
        await relays(sessions(), sessionId, 'other', [2])
        await relays(sessions(), sessionId, 'c', [3])
        await relays(sessions(), sessionId, 'other', [4])
        await sessions().move('c', sessionId, sessionId, true)
        const taker = await openReady(sessions(), { participant })
        await sessions().move('c', sessionId, taker.id, true)
        await stepsOf(sessions()).release(sessionId, 'c')
        await sessions().ready(sessionId)
        await relays(sessions(), sessionId, 'other', [5])
        await given().settled()
        expect(numbersOf(taker.socket)).toEqual([1, 3])
        // Numbers have no gaps: every numbered push is sent.
        expect(seqsOf(socket)).toEqual(extended ? [1, 2, 3, 4, 5] : [undefined, undefined, undefined])
        expect(numbersOf(socket)).toEqual(extended ? [1, 2, 3, 4, 5] : [2, 4, 5])
      })

      test('from or to a session that is not there, or to itself: nothing happens', async () => {
        const seen = await holder(somebody())
        await relays(sessions(), seen.id, 'c', [1])
        await drop(seen)
        for (const [from, to] of [
          [seen.id, 'nobody'],
          ['nobody', seen.id],
          [seen.id, seen.id],
        ] as const) {
          await sessions().move('c', from, to, true)
        }
        const taker = await openReady(sessions(), { participant: seen.identity.participant })
        await sessions().move('c', seen.id, taker.id, true)
        await given().settled()
        expect(numbersOf(taker.socket)).toEqual([1])
      })

      test('[PLACE2] it passes on from one taker to the next', async () => {
        const participant = somebody()
        const seen = await holder(participant)
        await relays(sessions(), seen.id, 'c', [1, 2])
        await drop(seen)
        const first = await openReady(sessions(), { participant, extended })
        await sessions().move('c', seen.id, first.id, false)
        await relays(sessions(), first.id, 'c', [3])
        await sessions().prove(first.id, 3)
        const second = await openReady(sessions(), { participant, extended })
        await sessions().move('c', first.id, second.id, true)
        await relays(sessions(), second.id, 'c', [4])
        await given().settled()
        expect(numbersOf(first.socket)).toEqual([1, 2, 3])
        expect(numbersOf(second.socket)).toEqual([1, 2, 3, 4])
      })
    })
  }

  describe('a place from before a restart', () => {
    test('[RES3] has a log, and its taker gets what came meanwhile', async () => {
      const lost = identityOf({ extended: false })
      const { sessionId, participant } = lost
      await stepsOf(sessions()).openDetached(lost, 0)
      await stepsOf(sessions()).hold(sessionId, 'c', true)
      expect(await sessions().append(sessionId, state('c', 5, 1))).toBe('kept')
      expect(await sessions().append(sessionId, relay('c', 2))).toBe('kept')
      expect(await sessions().append(sessionId, notice('c', 6, 3))).toBe('dropped')
      expect(await sessions().sinkOf(sessionId)).toBeUndefined()
      expect(await sessions().liveOf(participant)).toEqual([])
      const back = await openReady(sessions(), { participant })
      await sessions().move('c', sessionId, back.id, true)
      await given().settled()
      expect(numbersOf(back.socket)).toEqual([1, 2])
    })

    test('a session that is there stays as it is', async () => {
      const seen = await openReady(sessions())
      await stepsOf(sessions()).openDetached(seen.identity, 0)
      expect(await sessions().sinkOf(seen.id)).toBe(seen.socket)
      expect(await relays(sessions(), seen.id, 'c', [1])).toEqual(['sent'])
    })
  })

  describe('final notices of sockets that died', () => {
    async function died(wish: Wish, call: string, n: number): Promise<Seen> {
      const seen = await openReady(sessions(), wish)
      await sessions().append(seen.id, final(call, 2, n))
      await drop(seen)
      return seen
    }
    async function collects(wish: Wish): Promise<number[]> {
      const seen = await openReady(sessions(), wish)
      await sessions().collectFinals(seen.identity)
      await given().settled()
      return numbersOf(seen.socket)
    }

    for (const extended of [false, true]) {
      describe(extended ? 'of extended sessions' : 'of base sessions', () => {
        test('[WS4] are for the same device of the same participant', async () => {
          const participant = somebody()
          await died({ participant, extended, deviceId: 'phone' }, 'c', 1)
          await died({ participant, extended, deviceId: null }, 'd', 2)
          expect(await collects({ participant: somebody(), deviceId: 'phone' })).toEqual([])
          expect(await collects({ participant: { ...participant, role: 'customer' } })).toEqual([])
          expect(await collects({ participant, deviceId: 'tablet' })).toEqual([])
          expect(await collects({ participant, deviceId: null })).toEqual([2])
          expect(await collects({ participant, deviceId: 'phone' })).toEqual([1])
        })

        test('[WS4] of each socket for one session that comes back, and nobody hears of a call twice', async () => {
          const participant = somebody()
          for (const n of [1, 2]) await died({ participant, extended }, 'c', n)
          await died({ participant, extended }, 'd', 3)
          expect((await collects({ participant, extended })).sort()).toEqual([1, 3])
          expect(await collects({ participant, extended })).toEqual([2])
          expect(await collects({ participant, extended })).toEqual([])
        })

        test('[PLACE5] that the client has proven to have are told to nobody', async () => {
          const participant = somebody()
          const seen = await openReady(sessions(), { participant, extended })
          await sessions().append(seen.id, final('c', 2, 1))
          await sessions().prove(seen.id, 1)
          await sessions().append(seen.id, final('d', 2, 2))
          await drop(seen)
          expect(await collects({ participant })).toEqual([2])
        })

        test('[WS4] are finals alone, and none of a call in which the new session has a place', async () => {
          const participant = somebody()
          const seen = await openReady(sessions(), { participant, extended })
          await sessions().append(seen.id, state('c', 2, 1))
          await relays(sessions(), seen.id, 'c', [2])
          await sessions().append(seen.id, final('c', 3, 3))
          await sessions().append(seen.id, final('d', 2, 4))
          await drop(seen)
          const back = await openReady(sessions(), { participant })
          await stepsOf(sessions()).hold(back.id, 'd', true)
          await sessions().collectFinals(back.identity)
          await given().settled()
          expect(numbersOf(back.socket)).toEqual([3])
        })

        test('[WS4] are not taken from a session with a socket', async () => {
          const participant = somebody()
          const seen = await openReady(sessions(), { participant, extended })
          await sessions().append(seen.id, final('c', 2, 1))
          expect(await collects({ participant })).toEqual([])
        })
      })
    }

    test('[RES1] are not taken from a session that has a socket again', async () => {
      const participant = somebody()
      const seen = await died({ participant }, 'c', 1)
      const back = await comeBack(sessions(), seen, 0)
      expect(await collects({ participant })).toEqual([])
      await given().settled()
      expect(back && numbersOf(back.socket)).toEqual([1])
    })

    test('[WS4] [RES1] come to a session that was away when they came, but not those of a session that may be resumed', async () => {
      const participant = somebody()
      const wishes = [{ participant, extended: false }, { participant }]
      const [gone, kept] = await Promise.all(wishes.map((wish) => openReady(sessions(), wish)))
      for (const [source, call] of [
        [gone, 'c'],
        [kept, 'd'],
      ] as const) {
        await stepsOf(sessions()).hold(source!.id, call, true)
        await drop(source!)
      }
      const seen = await openReady(sessions(), { participant })
      await sessions().collectFinals(seen.identity)
      await drop(seen)
      await sessions().append(gone!.id, final('c', 2, 1))
      await sessions().append(kept!.id, final('d', 2, 2))
      await stepsOf(sessions()).release(gone!.id, 'c')
      const back = await comeBack(sessions(), seen, 0)
      await sessions().collectFinals(seen.identity)
      await given().settled()
      expect(back && numbersOf(back.socket)).toEqual([1])
      const other = await comeBack(sessions(), kept!, 0)
      await given().settled()
      expect(other && numbersOf(other.socket)).toEqual([2])
    })

    test('[WS4] and a base session that has given all away is forgotten', async () => {
      const participant = somebody()
      const seen = await died({ participant, extended: false }, 'c', 1)
      await collects({ participant })
      expect(await sessions().append(seen.id, relay('c', 2))).toBe('gone')
    })

    test('[WS4] from before a restart are for every device, for nobody knows how many rang', async () => {
      const participant = somebody()
      const before = identityOf({ participant, deviceId: undefined, extended: false })
      await stepsOf(sessions()).openDetached(before, 0)
      await stepsOf(sessions()).ring(before.sessionId, 'c')
      await sessions().appendRung(participant, final('c', 2, 1), [])
      expect(await collects({ participant, deviceId: 'phone' })).toEqual([1])
      expect(await collects({ participant, deviceId: null })).toEqual([1])
    })

    test('[RES2] an extended session whose resume was refused has its own', async () => {
      const participant = somebody()
      const seen = await openReady(sessions(), { participant })
      await sessions().append(seen.id, final('c', 2, 1))
      // Its old socket was retired, and the end of it was not observed yet.
      const refused = await sessions().resume(
        { sessionId: seen.id, epoch: 'another', seq: 0 },
        seen.identity,
        createSocket(),
        0,
      )
      expect(refused).toBeUndefined()
      expect(await sessions().sinkOf(seen.id)).toBeUndefined()
      expect(await sessions().liveOf(participant)).toEqual([])
      expect(await collects({ participant })).toEqual([1])
      expect(await drop(seen)).toBe(false)
    })

    test('[RES2] who gave its finals away does not come back as if it had them', async () => {
      const participant = somebody()
      const seen = await died({ participant }, 'c', 1)
      expect(await collects({ participant })).toEqual([1])
      expect(await comeBack(sessions(), seen, 0)).toBeUndefined()
    })
  })
}
