import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  comeBack,
  createSocket,
  numbersOf,
  openReady,
  pushes,
  relays,
  resumeOf,
  type SessionsHarness,
  seqsOf,
  somebody,
  upTo,
} from './session-parts.ts'

const { state } = pushes

/** Logs that are lost: said to those who have a socket, and never claimed to be whole [RES4]. */
export function registerLostLogRules(name: string, open: () => Promise<SessionsHarness>): void {
  describe(`${name}: Sessions whose logs are lost`, () => {
    let harness: SessionsHarness
    const sessions = () => harness.sessions
    beforeEach(async () => {
      harness = await open()
    })
    afterEach(() => harness.close())

    test('[RES4] each extended session with a socket is told, and no other', async () => {
      const [one, two, lost] = await Promise.all([openReady(sessions()), openReady(sessions()), openReady(sessions())])
      await openReady(sessions(), { extended: false })
      await sessions().detach(lost.id, lost.socket, false, 0)
      await relays(sessions(), one.id, 'c', [1])
      expect(harness.lost).toEqual([])
      await harness.loseLogs()
      expect(harness.lost.map(({ sessionId }) => sessionId).sort()).toEqual([one.id, two.id].sort())
      for (const { epoch } of harness.lost) expect(epoch).not.toBe(one.epoch)
    })

    test('[RES4] seq begins again at 1, under the epoch that was told', async () => {
      const seen = await openReady(sessions())
      await relays(sessions(), seen.id, 'c', [1, 2, 3])
      await harness.loseLogs()
      await relays(sessions(), seen.id, 'c', [4, 5])
      await harness.settled()
      expect(numbersOf(seen.socket)).toEqual([1, 2, 3, 0, 4, 5])
      expect(seqsOf(seen.socket)).toEqual([1, 2, 3, 1, 2, 3])
      const [told] = harness.lost
      await sessions().detach(seen.id, seen.socket, false, 0)
      // Who has not even heard of the loss is not one who has everything.
      const named = { ...seen, epoch: told?.epoch ?? '' }
      const back = await comeBack(sessions(), named, 2)
      await harness.settled()
      expect(back && numbersOf(back.socket)).toEqual([5])
    })

    test('[RES2] nobody comes back to a log that was lost, whatever seq it names', async () => {
      for (const seq of [0, 1, 2, 3]) {
        const seen = await openReady(sessions())
        await relays(sessions(), seen.id, 'c', [1, 2])
        await sessions().detach(seen.id, seen.socket, false, 0)
        await harness.loseLogs()
        if (seq === 3) await relays(sessions(), seen.id, 'c', [3, 4, 5])
        expect(await sessions().resume(resumeOf(seen, seq), seen.identity, seen.socket, 0)).toBeUndefined()
      }
    })

    test('[RES2] a new session has the new epoch', async () => {
      const seen = await openReady(sessions())
      await harness.loseLogs()
      const next = await openReady(sessions(), { participant: somebody() })
      expect(next.epoch).not.toBe(seen.epoch)
    })

    test('[RES4] each loss is told, with an epoch of its own', async () => {
      const seen = await openReady(sessions())
      await harness.loseLogs()
      await harness.loseLogs()
      const epochs = [seen.epoch, ...harness.lost.map(({ epoch }) => epoch)]
      expect(new Set(epochs).size).toBe(3)
    })

    test('[PLACE2] who has a socket keeps it, its place and its requests', async () => {
      const seen = await openReady(sessions())
      await sessions().hold(seen.id, 'c', true)
      await sessions().append(seen.id, pushes.ringing('d', 1, 1))
      await harness.settled()
      seen.upstream.handled = 4
      await harness.loseLogs()
      expect(await sessions().sinkOf(seen.id)).toBe(seen.socket)
      expect(await sessions().holdsAny(seen.id)).toBe(true)
      expect(await sessions().append(seen.id, pushes.ringing('d', 1, 3))).toBe('dropped')
      expect(await sessions().append(seen.id, state('c', 1, 2))).toBe('sent')
      await sessions().detach(seen.id, seen.socket, false, 0)
      const back = await comeBack(sessions(), { ...seen, epoch: harness.lost[0]?.epoch ?? '' }, 1)
      expect(back?.upstream.handled).toBe(4)
    })

    test('[PLACE5] a pong to a ping of before proves nothing of the new log', async () => {
      for (const extended of [true, false]) {
        const participant = somebody()
        const seen = await openReady(sessions(), { participant, extended })
        await sessions().hold(seen.id, 'c', true)
        await relays(sessions(), seen.id, 'c', upTo(9))
        await harness.loseLogs()
        await relays(sessions(), seen.id, 'c', [10])
        await sessions().prove(seen.id, 9)
        await relays(sessions(), seen.id, 'c', [11])
        await sessions().detach(seen.id, seen.socket, false, 0)
        const taker = await openReady(sessions(), { participant })
        await sessions().move('c', seen.id, taker.id, true)
        await harness.settled()
        expect(numbersOf(taker.socket)).toEqual([10, 11])
      }
    })

    test('[PLACE5] what was proven of the old log is not proven of the new one', async () => {
      const seen = await openReady(sessions())
      await sessions().hold(seen.id, 'c', true)
      await relays(sessions(), seen.id, 'c', upTo(9))
      await sessions().prove(seen.id, 9)
      await harness.loseLogs()
      await relays(sessions(), seen.id, 'c', [10])
      await sessions().detach(seen.id, seen.socket, false, 0)
      const taker = await openReady(sessions(), { participant: seen.identity.participant })
      await sessions().move('c', seen.id, taker.id, true)
      await harness.settled()
      expect(numbersOf(taker.socket)).toEqual([10])
    })

    test('[RES4] a session that was just coming back gets all of the new log', async () => {
      const seen = await openReady(sessions())
      await relays(sessions(), seen.id, 'c', upTo(3))
      await sessions().detach(seen.id, seen.socket, false, 0)
      const socket = createSocket()
      await sessions().resume(resumeOf(seen, 3), seen.identity, socket, 0)
      await harness.loseLogs()
      await relays(sessions(), seen.id, 'c', [4, 5])
      await sessions().ready(seen.id)
      await harness.settled()
      expect(harness.lost.map(({ sessionId }) => sessionId)).toEqual([seen.id])
      expect(numbersOf(socket)).toEqual([0, 4, 5])
      expect(seqsOf(socket)).toEqual([1, 2, 3])
    })

    test('a base session goes on as if nothing had been', async () => {
      const seen = await openReady(sessions(), { extended: false })
      await relays(sessions(), seen.id, 'c', [1])
      await harness.loseLogs()
      expect(await relays(sessions(), seen.id, 'c', [2])).toEqual(['sent'])
      await harness.settled()
      expect(numbersOf(seen.socket)).toEqual([1, 2])
    })
  })
}
