import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createSocket, openReady, resumeOf, somebody, stepsOf } from '../../src/ports/sessions.fixture.ts'
import { comeBack, numbersOf, pushes, relays, type SessionsHarness, seqsOf, upTo } from './session-parts.ts'

const { state } = pushes

/** The store is emptied: sessions that have an owner lose nothing by it, and hear nothing of it. */
export function registerEmptiedRules(name: string, open: () => Promise<SessionsHarness>): void {
  describe(`${name}: Sessions whose store is emptied`, () => {
    let harness: SessionsHarness
    const sessions = () => harness.sessions
    beforeEach(async () => {
      harness = await open()
    })
    afterEach(() => harness.close())

    for (const extended of [true, false]) {
      test(`[RES4] ${extended ? 'an extended' : 'a base'} session with a socket goes on as if nothing had been`, async () => {
        const seen = await openReady(sessions(), { extended })
        await relays(sessions(), seen.id, 'c', [1, 2, 3])
        await harness.emptyStore()
        expect(await relays(sessions(), seen.id, 'c', [4, 5])).toEqual(['sent', 'sent'])
        await harness.settled()
        expect(numbersOf(seen.socket)).toEqual(upTo(5))
        if (extended) expect(seqsOf(seen.socket)).toEqual(upTo(5))
        expect(await sessions().liveOf(seen.identity.participant)).toEqual([seen.id])
        expect(seen.socket.closes).toEqual([])
      })
    }

    test('[RES1] a resume is exact, however often that happened, with a socket or without', async () => {
      const seen = await openReady(sessions())
      await relays(sessions(), seen.id, 'c', [1, 2])
      await harness.emptyStore()
      await relays(sessions(), seen.id, 'c', [3])
      await sessions().detach(seen.id, seen.socket, false, 0)
      await harness.emptyStore()
      await relays(sessions(), seen.id, 'c', [4])
      const back = await comeBack(sessions(), seen, 1)
      await harness.settled()
      expect(back?.epoch).toBe(seen.epoch)
      expect(back && numbersOf(back.socket)).toEqual([2, 3, 4])
    })

    test('[RES1] a session that was just coming back gets what came meanwhile', async () => {
      const seen = await openReady(sessions())
      await relays(sessions(), seen.id, 'c', upTo(3))
      await sessions().detach(seen.id, seen.socket, false, 0)
      const socket = createSocket()
      await sessions().resume(resumeOf(seen, 3), seen.identity, socket, 0)
      await harness.emptyStore()
      await relays(sessions(), seen.id, 'c', [4, 5])
      await sessions().ready(seen.id)
      await harness.settled()
      expect(numbersOf(socket)).toEqual([4, 5])
      expect(seqsOf(socket)).toEqual([4, 5])
    })

    test('[PLACE2] who has a socket keeps it, its place, its rings and its requests', async () => {
      const seen = await openReady(sessions())
      await stepsOf(sessions()).hold(seen.id, 'c', true)
      await sessions().append(seen.id, pushes.ringing('d', 1, 1))
      Object.assign(seen.upstream, { handled: 4, final: 4 })
      await harness.emptyStore()
      expect(await sessions().sinkOf(seen.id)).toBe(seen.socket)
      expect(await sessions().holdsAny(seen.id)).toBe(true)
      expect(await sessions().append(seen.id, pushes.ringing('d', 1, 3))).toBe('dropped')
      expect(await sessions().append(seen.id, state('c', 1, 2))).toBe('sent')
      await sessions().detach(seen.id, seen.socket, false, 0)
      const back = await comeBack(sessions(), seen, 2)
      expect(back?.upstream.handled).toBe(4)
    })

    test('[PLACE5] what was proven stays so, for who takes the place', async () => {
      for (const extended of [true, false]) {
        const participant = somebody()
        const seen = await openReady(sessions(), { participant, extended })
        await stepsOf(sessions()).hold(seen.id, 'c', true)
        await relays(sessions(), seen.id, 'c', upTo(9))
        await sessions().prove(seen.id, 8)
        await harness.emptyStore()
        await relays(sessions(), seen.id, 'c', [10])
        await sessions().detach(seen.id, seen.socket, false, 0)
        await harness.emptyStore()
        const taker = await openReady(sessions(), { participant })
        await sessions().move('c', seen.id, taker.id, true)
        await harness.settled()
        expect(numbersOf(taker.socket)).toEqual([9, 10])
      }
    })
  })
}
