import { describe, expect, test } from 'bun:test'
import { createSocket, identityOf, openReady, somebody, stepsOf } from '../../src/ports/sessions.fixture.ts'
import { numbersOf, pushes, type SessionsHarness, seqsOf, upTo } from './session-parts.ts'

const { ringing, state, final, notice, relay } = pushes

/** What is sent, kept, dropped or has nowhere to go. */
export function registerDeliveryRules(given: () => SessionsHarness): void {
  for (const extended of [false, true]) {
    describe(extended ? 'delivery to an extended session' : 'delivery to a base session', () => {
      const { sessions, settled } = { sessions: () => given().sessions, settled: () => given().settled() }

      test('[ORD3] pushes are kept back until it is ready, and then come in order', async () => {
        const identity = identityOf({ extended })
        const socket = createSocket()
        await sessions().open(identity, socket, 0)
        expect(await sessions().append(identity.sessionId, ringing('c', 1, 1))).toBe('kept')
        expect(await sessions().append(identity.sessionId, relay('c', 2))).toBe('kept')
        await settled()
        expect(socket.told).toEqual([])
        await sessions().ready(identity.sessionId)
        expect(await sessions().append(identity.sessionId, relay('c', 3))).toBe('sent')
        await settled()
        expect(numbersOf(socket)).toEqual([1, 2, 3])
        expect(socket.pushedSeqs).toEqual([1, 2, 3])
        await sessions().ready(identity.sessionId)
        await settled()
        expect(numbersOf(socket)).toEqual([1, 2, 3])
      })

      test('[EXT1] every push is as it was given, numbered for an extended session alone', async () => {
        const { id, socket } = await openReady(sessions(), { extended })
        await sessions().append(id, ringing('c', 4, 1))
        await sessions().append(id, relay('c', 2))
        await sessions().append(id, state('c', 5, 3))
        await sessions().append(id, final('c', 9, 4))
        await settled()
        expect(socket.told.map(({ event, data, ...numbers }) => [event, numbers])).toEqual([
          ['call.ringing', extended ? { seq: 1, version: 4 } : {}],
          ['webrtc.offer', extended ? { seq: 2 } : {}],
          ['call.accepted', extended ? { seq: 3, version: 5 } : {}],
          ['call.ended', extended ? { seq: 4, version: 9 } : {}],
        ] as never)
        expect(numbersOf(socket)).toEqual([1, 2, 3, 4])
      })

      test('[EXT5] notices are for extended sessions alone, and leave no gap and no trace in others', async () => {
        const { id, socket } = await openReady(sessions(), { extended })
        expect(await sessions().append(id, notice('c', 3, 1))).toBe(extended ? 'sent' : 'dropped')
        expect(await sessions().append(id, notice('', undefined, 2))).toBe(extended ? 'sent' : 'dropped')
        // A base session was not told version 3.
        expect(await sessions().append(id, state('c', 3, 3))).toBe(extended ? 'dropped' : 'sent')
        await sessions().append(id, relay('c', 4))
        await settled()
        expect(numbersOf(socket)).toEqual(extended ? [1, 2, 4] : [3, 4])
        if (extended) expect(seqsOf(socket)).toEqual([1, 2, 3])
      })

      test('[ORD3] a version that is not newer than the last of its call is dropped', async () => {
        const { id, socket } = await openReady(sessions(), { extended })
        const results = []
        for (const push of [
          state('c', 3, 1),
          state('c', 3, 2),
          state('c', 2, 3),
          ringing('c', 1, 4),
          final('c', 3, 5),
          state('d', 1, 6),
          state('c', 4, 7),
          relay('c', 8),
        ]) {
          results.push(await sessions().append(id, push))
        }
        expect(results).toEqual(['sent', 'dropped', 'dropped', 'dropped', 'dropped', 'sent', 'sent', 'sent'])
        await settled()
        expect(numbersOf(socket)).toEqual([1, 6, 7, 8])
      })

      test('a call rings once at a session, however it began to', async () => {
        const { id, socket } = await openReady(sessions(), { extended })
        expect(await sessions().append(id, ringing('c', 1, 1))).toBe('sent')
        expect(await sessions().append(id, ringing('c', 2, 2))).toBe('dropped')
        await stepsOf(sessions()).ring(id, 'd')
        expect(await sessions().append(id, ringing('d', 1, 3))).toBe('dropped')
        expect(await sessions().append(id, final('c', 3, 4))).toBe('sent')
        await settled()
        expect(numbersOf(socket)).toEqual([1, 4])
      })

      test('there is no such session: gone, and none comes of it', async () => {
        const { sessionId, participant } = identityOf({ extended })
        for (const push of [ringing('c', 1, 1), state('c', 1, 2), final('c', 1, 3), relay('c', 4)]) {
          expect(await sessions().append(sessionId, push)).toBe('gone')
        }
        await stepsOf(sessions()).ring(sessionId, 'c')
        await stepsOf(sessions()).hold(sessionId, 'c', true)
        await stepsOf(sessions()).release(sessionId, 'c')
        await sessions().prove(sessionId, 5)
        await sessions().ready(sessionId)
        expect(await sessions().sinkOf(sessionId)).toBeUndefined()
        expect(await sessions().liveOf(participant)).toEqual([])
        expect(await sessions().holdsAny(sessionId)).toBe(false)
        expect(await sessions().inCall(sessionId)).toBe(false)
        expect(await sessions().detach(sessionId, createSocket(), false, 0)).toBe(false)
        expect(await sessions().append(sessionId, relay('c', 5))).toBe('gone')
      })

      test('[ORD1] a socket that is gone is detached once, and by no other', async () => {
        const { id, socket } = await openReady(sessions(), { extended })
        await stepsOf(sessions()).hold(id, 'c', true)
        expect(await sessions().detach(id, createSocket(), false, 0)).toBe(false)
        expect(await sessions().sinkOf(id)).toBe(socket)
        expect(await sessions().detach(id, socket, false, 0)).toBe(true)
        expect(await sessions().sinkOf(id)).toBeUndefined()
        expect(await sessions().detach(id, socket, false, 0)).toBe(false)
        expect(await sessions().append(id, relay('c', 1))).toBe('kept')
        await settled()
        expect(socket.told).toEqual([])
      })

      test('[WS7] the sessions of a participant that have a socket, oldest first', async () => {
        const participant = somebody()
        const first = await openReady(sessions(), { extended, participant })
        const second = await openReady(sessions(), { extended, participant, deviceId: null })
        const third = await openReady(sessions(), { extended, participant })
        const role = { ...participant, role: 'customer' }
        const product = { ...participant, product: 'bank' }
        await openReady(sessions(), { extended, participant: role })
        await stepsOf(sessions()).openDetached(identityOf({ extended, participant }), 0)
        expect(await sessions().liveOf(participant)).toEqual([first.id, second.id, third.id])
        expect(await sessions().liveOf(role)).toHaveLength(1)
        expect(await sessions().liveOf(product)).toEqual([])
        await sessions().detach(second.id, second.socket, false, 0)
        expect(await sessions().liveOf(participant)).toEqual([first.id, third.id])
      })

      test('[WS5] it is in a call while it has a place or rings', async () => {
        const { id } = await openReady(sessions(), { extended })
        const now = async () => [await sessions().holdsAny(id), await sessions().inCall(id)]
        expect(await now()).toEqual([false, false])
        await sessions().append(id, ringing('c', 1, 1))
        expect(await now()).toEqual([false, true])
        await stepsOf(sessions()).hold(id, 'c', true)
        await stepsOf(sessions()).hold(id, 'd', false)
        expect(await now()).toEqual([true, true])
        await stepsOf(sessions()).release(id, 'c')
        expect(await now()).toEqual([true, true])
        await stepsOf(sessions()).release(id, 'd')
        expect(await now()).toEqual([false, false])
        await stepsOf(sessions()).ring(id, 'e')
        await sessions().append(id, final('e', 2, 2))
        expect(await now()).toEqual([false, false])
        const idle = await openReady(sessions(), { extended })
        await stepsOf(sessions()).hold(idle.id, 'c', true)
        await stepsOf(sessions()).release(idle.id, 'c')
        for (const each of [id, idle.id]) expect(await sessions().append(each, relay('f', 3))).toBe('sent')
      })
    })
  }

  describe('delivery to all that rang', () => {
    const sessions = () => given().sessions

    test('[PLACE1] with a socket and without, but for some; and to nobody else', async () => {
      const participant = somebody()
      const wishes = [{ extended: false }, { extended: true }, { extended: true, deviceId: null }, { extended: false }]
      const all = await Promise.all(wishes.map((wish) => openReady(sessions(), { participant, ...wish })))
      const [base, gone, silenced, other] = all as [(typeof all)[0], (typeof all)[0], (typeof all)[0], (typeof all)[0]]
      const stranger = await openReady(sessions(), {})
      for (const { id } of [base, gone, silenced, stranger]) await sessions().append(id, ringing('c', 1, 1))
      await sessions().detach(gone.id, gone.socket, false, 0)
      await sessions().appendRung(participant, final('c', 2, 2), [silenced.id])
      await sessions().appendRung(participant, final('c', 3, 3), [])
      await given().settled()
      expect(numbersOf(base.socket)).toEqual([1, 2])
      expect(numbersOf(silenced.socket)).toEqual([1])
      expect(numbersOf(other.socket)).toEqual([])
      expect(numbersOf(stranger.socket)).toEqual([1])
      for (const { id } of [base, gone, silenced, other]) expect(await sessions().inCall(id)).toBe(false)
      const back = createSocket()
      const resumed = await sessions().resume({ sessionId: gone.id, epoch: gone.epoch, seq: 1 }, gone.identity, back, 0)
      expect(resumed).toBeDefined()
      await sessions().ready(gone.id)
      await given().settled()
      expect(numbersOf(back)).toEqual([2])
    })

    test('[WS4] a session that was rung before a restart is told, once', async () => {
      const participant = somebody()
      const before = identityOf({ participant, deviceId: undefined, extended: false })
      await stepsOf(sessions()).openDetached(before, 0)
      await stepsOf(sessions()).ring(before.sessionId, 'c')
      expect(await sessions().inCall(before.sessionId)).toBe(true)
      await sessions().appendRung(participant, final('c', 2, 1), [])
      await sessions().appendRung(participant, final('c', 2, 2), [])
      const back = await openReady(sessions(), { participant, extended: false })
      await sessions().collectFinals(back.identity)
      await given().settled()
      expect(numbersOf(back.socket)).toEqual([1])
    })

    for (const hadPlace of [false, true]) {
      const who = hadPlace ? 'had the place' : 'rang'
      test(`[WS4] an end that is told when the device of a dead socket that ${who} is back already is heard there, once`, async () => {
        const dead = await openReady(sessions(), { extended: false })
        const { participant, deviceId } = dead.identity
        if (hadPlace) await stepsOf(sessions()).hold(dead.id, 'c', true)
        else await sessions().append(dead.id, ringing('c', 1, 1))
        await given().settled()
        await sessions().detach(dead.id, dead.socket, false, 0)
        // They looked, and nothing was there: the end was committed, and no session had heard of it.
        const [other, back, next] = [
          await openReady(sessions(), { participant, extended: false, deviceId: 'another' }),
          await openReady(sessions(), { participant, extended: false, deviceId }),
          await openReady(sessions(), { participant, extended: false, deviceId }),
        ]
        for (const { identity } of [other, back, next]) await sessions().collectFinals(identity)
        if (hadPlace) await sessions().append(dead.id, final('c', 2, 2))
        else await sessions().appendRung(participant, final('c', 2, 2), [])
        const last = await openReady(sessions(), { participant, extended: false, deviceId })
        await sessions().collectFinals(last.identity)
        await given().settled()
        const heard = [other, back, next, last].map(({ socket }) => numbersOf(socket).filter((n) => n === 2).length)
        expect([heard[0], heard[1]! + heard[2]!, heard[3]]).toEqual([0, 1, 0])
      })
    }

    test('[PLACE1] a state goes to all that rang, and they ring on', async () => {
      const participant = somebody()
      const { id, socket } = await openReady(sessions(), { participant })
      await sessions().append(id, ringing('c', 1, 1))
      await sessions().appendRung(participant, state('c', 2, 2), [])
      expect(await sessions().inCall(id)).toBe(true)
      await given().settled()
      expect(numbersOf(socket)).toEqual(upTo(2))
    })
  })
}
