import { describe, expect, test } from 'bun:test'
import {
  createSocket,
  identityOf,
  openReady,
  resumeOf,
  type Seen,
  somebody,
  stepsOf,
} from '../../src/ports/sessions.fixture.ts'
import { sessionLogLimits } from '../../src/ports/sessions.ts'
import {
  comeBack,
  numbersOf,
  pushes,
  relays,
  resumeWindowMs,
  type SessionsHarness,
  seqsOf,
  upTo,
  windowMs,
} from './session-parts.ts'

const { ringing, state, final, relay } = pushes
/** Without a socket, a base session's log holds this much [REL2]. */
const waitingLimits = { events: 256, bytes: 256 * 1024 } as const

/** What a log holds, and for how long. */
export function registerLogRules(given: () => SessionsHarness): void {
  const sessions = () => given().sessions

  async function lost(extended: boolean, ns: readonly number[], pad = 0): Promise<Seen> {
    const seen = await openReady(sessions(), { extended })
    await stepsOf(sessions()).hold(seen.id, 'c', true)
    await relays(sessions(), seen.id, 'c', ns, pad)
    await sessions().detach(seen.id, seen.socket, false, 0)
    return seen
  }

  describe('bounds of a log', () => {
    for (const extended of [false, true]) {
      const kind = extended ? 'an extended' : 'a base'

      test(`[RES1] with a socket, ${kind} session keeps the newest ${sessionLogLimits.events} events`, async () => {
        const all = upTo(sessionLogLimits.events + 88)
        const seen = await openReady(sessions(), { extended })
        const results = await relays(sessions(), seen.id, 'c', all)
        expect(new Set(results)).toEqual(new Set(['sent']))
        await given().settled()
        expect(numbersOf(seen.socket)).toEqual(all)
        await sessions().detach(seen.id, seen.socket, false, 0)
        expect(await handedOn(given(), seen)).toEqual(upTo(all.length, 89))
      })

      test(`[RES1] with a socket, ${kind} session keeps the newest MiB`, async () => {
        const seen = await lost(extended, upTo(40), 60_000)
        expect(await handedOn(given(), seen)).toEqual(upTo(40, 40 - Math.floor(sessionLogLimits.bytes / 60_050) + 1))
      })

      test(`${kind} session is handed large pushes whole`, async () => {
        const { id, socket } = await openReady(sessions(), { extended })
        await relays(sessions(), id, 'c', upTo(30), 60_000)
        await given().settled()
        expect(numbersOf(socket)).toEqual(upTo(30))
      })
    }

    test(`[REL2] without a socket, a base session keeps ${waitingLimits.events} events, and no relay over it`, async () => {
      const seen = await lost(false, [])
      const results = await relays(sessions(), seen.id, 'c', upTo(waitingLimits.events + 2))
      expect(results.filter((it) => it === 'kept')).toHaveLength(waitingLimits.events)
      expect(results.slice(-2)).toEqual(['full', 'full'])
      expect(await sessions().append(seen.id, state('c', 3, 998))).toBe('kept')
      expect(await sessions().append(seen.id, final('c', 4, 999))).toBe('kept')
      expect(await handedOn(given(), seen)).toEqual([...upTo(waitingLimits.events), 998, 999])
    })

    test('[REL2] without a socket, a base session keeps 256 KiB, and no relay over it', async () => {
      const seen = await lost(false, [])
      const fit = Math.floor(waitingLimits.bytes / 60_050)
      const results = await relays(sessions(), seen.id, 'c', upTo(fit + 1), 60_000)
      expect(results).toEqual([...upTo(fit).map(() => 'kept' as const), 'full'])
      // There is room for a small one.
      expect(await sessions().append(seen.id, relay('c', 99))).toBe('kept')
      expect(await sessions().append(seen.id, final('c', 4, 999))).toBe('kept')
      expect(await handedOn(given(), seen)).toEqual([...upTo(fit), 99, 999])
    })

    test('[REL2] what a base session had with its socket counts when it is gone', async () => {
      const seen = await lost(false, upTo(300))
      expect(await relays(sessions(), seen.id, 'c', [301])).toEqual(['full'])
      expect(await handedOn(given(), seen)).toEqual(upTo(300))
    })

    test('[REL2] what a taker got makes room', async () => {
      const seen = await lost(false, [])
      await stepsOf(sessions()).hold(seen.id, 'd', true)
      const fit = Math.floor(waitingLimits.bytes / 60_050)
      await relays(sessions(), seen.id, 'c', upTo(fit), 60_000)
      await handedOn(given(), seen)
      const again = await relays(sessions(), seen.id, 'd', upTo(fit + 1), 60_000)
      expect(again).toEqual([...upTo(fit).map(() => 'kept' as const), 'full'])
    })

    test('[RES1] where a log was trimmed before it could be handed out, the socket is closed and nothing is', async () => {
      for (const isResumed of [false, true]) {
        const seen = await openReady(sessions())
        await relays(sessions(), seen.id, 'c', upTo(3))
        await sessions().detach(seen.id, seen.socket, false, 0)
        const identity = isResumed ? seen.identity : identityOf()
        const socket = createSocket()
        if (isResumed) await sessions().resume(resumeOf(seen, 2), identity, socket, 0)
        else await sessions().open(identity, socket, 0)
        const { sessionId } = identity
        await relays(sessions(), sessionId, 'c', upTo(sessionLogLimits.events + 6, 4))
        await sessions().ready(sessionId)
        await relays(sessions(), sessionId, 'c', [999])
        await given().settled()
        expect(numbersOf(socket)).toEqual([])
        expect(socket.closes).toEqual([1013])
        await sessions().detach(sessionId, socket, false, 0)
        const request = { sessionId, epoch: seen.epoch, seq: isResumed ? 2 : 0 }
        expect(await sessions().resume(request, identity, createSocket(), 0)).toBeUndefined()
      }
    })

    test('[RES1] without a socket, an extended session drops the oldest, and does not claim to be whole', async () => {
      const seen = await lost(true, upTo(10))
      const rest = upTo(sessionLogLimits.events + 10, 11)
      expect(new Set(await relays(sessions(), seen.id, 'c', rest))).toEqual(new Set(['kept']))
      expect(await comeBack(sessions(), seen, 9)).toBeUndefined()
    })
  })

  describe('what a client has proven to have received', () => {
    for (const extended of [false, true]) {
      test(`[PLACE5] is not for who takes its place, from ${extended ? 'an extended' : 'a base'} session`, async () => {
        const seen = await openReady(sessions(), { extended })
        await stepsOf(sessions()).hold(seen.id, 'c', true)
        await relays(sessions(), seen.id, 'c', upTo(6))
        await sessions().prove(seen.id, 4)
        await sessions().prove(seen.id, 2)
        await sessions().detach(seen.id, seen.socket, false, 0)
        await relays(sessions(), seen.id, 'c', [7])
        expect(await handedOn(given(), seen)).toEqual([5, 6, 7])
      })

      test(`[PLACE2] stays where ${extended ? 'an extended' : 'a base'} session has not spoken`, async () => {
        const seen = await openReady(sessions(), { extended })
        await stepsOf(sessions()).hold(seen.id, 'c', false)
        await stepsOf(sessions()).hold(seen.id, 'd', true)
        await relays(sessions(), seen.id, 'c', [1, 2])
        await relays(sessions(), seen.id, 'd', [3])
        await sessions().prove(seen.id, 3)
        await relays(sessions(), seen.id, 'c', [4])
        expect(await handedOn(given(), seen, 'd')).toEqual([])
        expect(await handedOn(given(), seen, 'c')).toEqual([1, 2, 4])
      })

      test(`[PLACE2] goes once ${extended ? 'an extended' : 'a base'} session has no place any more`, async () => {
        const seen = await openReady(sessions(), { extended })
        await stepsOf(sessions()).hold(seen.id, 'c', false)
        await relays(sessions(), seen.id, 'c', [1, 2])
        await stepsOf(sessions()).release(seen.id, 'c')
        await sessions().prove(seen.id, 2)
        expect(await handedOn(given(), seen)).toEqual([])
      })

      test(`[PLACE2] goes once ${extended ? 'an extended' : 'a base'} session has spoken`, async () => {
        const seen = await openReady(sessions(), { extended })
        await stepsOf(sessions()).hold(seen.id, 'c', false)
        await relays(sessions(), seen.id, 'c', [1, 2])
        await stepsOf(sessions()).hold(seen.id, 'c', true)
        await sessions().prove(seen.id, 2)
        await relays(sessions(), seen.id, 'c', [3])
        expect(await handedOn(given(), seen)).toEqual([3])
      })

      test('[PLACE5] is nothing of what was not given out yet', async () => {
        const seen = await openReady(sessions(), { extended })
        await stepsOf(sessions()).hold(seen.id, 'c', true)
        await relays(sessions(), seen.id, 'c', [1])
        await sessions().prove(seen.id, 99)
        await relays(sessions(), seen.id, 'c', [2])
        await sessions().detach(seen.id, seen.socket, false, 0)
        expect(await handedOn(given(), seen)).toEqual([1, 2])
      })
    }

    test('[RES1] is what a resume says that it has seen', async () => {
      const seen = await openReady(sessions())
      await stepsOf(sessions()).hold(seen.id, 'c', true)
      await relays(sessions(), seen.id, 'c', upTo(5))
      await sessions().detach(seen.id, seen.socket, false, 0)
      const back = (await comeBack(sessions(), seen, 3)) ?? seen
      await sessions().detach(seen.id, back.socket, false, 0)
      expect(await handedOn(given(), seen)).toEqual([4, 5])
    })

    test('[RES1] can still be had again by an extended session', async () => {
      const seen = await openReady(sessions())
      await relays(sessions(), seen.id, 'c', upTo(6))
      await sessions().prove(seen.id, 6)
      await sessions().detach(seen.id, seen.socket, false, 0)
      const back = await comeBack(sessions(), seen, 2)
      await given().settled()
      expect(back && numbersOf(back.socket)).toEqual([3, 4, 5, 6])
      expect(back && seqsOf(back.socket)).toEqual([3, 4, 5, 6])
    })
  })

  describe('how long a session is remembered', () => {
    const remembers = async ({ id }: Seen) => (await sessions().append(id, relay('x', 1))) !== 'gone'

    test('[ID2] a base one that is lost with nothing in its log is forgotten at once', async () => {
      const seen = await openReady(sessions(), { extended: false })
      await sessions().detach(seen.id, seen.socket, false, 1_000)
      expect(await remembers(seen)).toBe(false)
    })

    for (const extended of [false, true]) {
      test(`[WS4] ${extended ? 'an extended one for the longer of the two windows after its loss' : 'a base one for the window of what waits in it'}`, async () => {
        const start = 1_000_000
        await sessions().sweep(start)
        // Two, because to ask for one is to append to it.
        const [seen, other] = [await openReady(sessions(), { extended }), await openReady(sessions(), { extended })]
        for (const { id, socket } of [seen, other]) {
          await sessions().append(id, final('c', 2, 1))
          await sessions().detach(id, socket, false, start)
        }
        const longest = extended ? Math.max(windowMs, resumeWindowMs) : windowMs
        await sessions().sweep(start + longest - 1)
        expect(await remembers(seen)).toBe(true)
        await sessions().sweep(start + longest)
        expect(await remembers(other)).toBe(false)
      })

      test(`[PLACE2] ${extended ? 'an extended' : 'a base'} one as long as it has a place or rings, and the window after`, async () => {
        const start = 1_000_000
        const [holder, rung] = [await openReady(sessions(), { extended }), await openReady(sessions(), { extended })]
        await stepsOf(sessions()).hold(holder.id, 'c', true)
        await relays(sessions(), holder.id, 'c', [1])
        await sessions().append(rung.id, ringing('d', 1, 1))
        for (const seen of [holder, rung]) await sessions().detach(seen.id, seen.socket, false, start)
        const later = start + 10 * resumeWindowMs
        await sessions().sweep(later)
        for (const seen of [holder, rung]) expect(await remembers(seen)).toBe(true)
        await sessions().append(holder.id, final('c', 3, 2))
        await stepsOf(sessions()).release(holder.id, 'c')
        await sessions().appendRung(rung.identity.participant, final('d', 2, 2), [])
        await sessions().sweep(later + resumeWindowMs - 1)
        for (const seen of [holder, rung]) expect(await remembers(seen)).toBe(true)
        await sessions().sweep(later + resumeWindowMs)
        for (const seen of [holder, rung]) expect(await remembers(seen)).toBe(false)
      })
    }

    test('one with a socket is never swept, nor one that has a socket again', async () => {
      const seen = await openReady(sessions(), { participant: somebody() })
      const lostOnce = await openReady(sessions())
      await sessions().detach(lostOnce.id, lostOnce.socket, false, 0)
      const back = await comeBack(sessions(), lostOnce, 0)
      await sessions().sweep(Number.MAX_SAFE_INTEGER)
      for (const { id } of [seen, lostOnce]) expect(await sessions().append(id, relay('c', 1))).toBe('sent')
      await given().settled()
      expect(back && numbersOf(back.socket)).toEqual([1])
    })

    test('[RES2] one that nobody can come back to is forgotten with the last that it has', async () => {
      const seen = await openReady(sessions())
      await stepsOf(sessions()).hold(seen.id, 'c', true)
      await sessions().detach(seen.id, seen.socket, false, 0)
      expect(await comeBack(sessions(), seen, 99)).toBeUndefined()
      expect(await remembers(seen)).toBe(true)
      await handedOn(given(), seen, 'x')
      await stepsOf(sessions()).release(seen.id, 'c')
      expect(await remembers(seen)).toBe(false)
    })
  })
}

/** What a close frame means has changed since 0.1.0. */
export function registerClosedRules(given: () => SessionsHarness): void {
  const sessions = () => given().sessions
  describe('a socket that its client closed', () => {
    for (const extended of [false, true]) {
      const who = extended ? 'an extended' : 'a base'
      test(`[PLACE5] of ${who} one what it was sent is not told again; what comes then is kept`, async () => {
        const seen = await openReady(sessions(), { extended })
        await stepsOf(sessions()).hold(seen.id, 'c', true)
        const { id } = seen
        await sessions().append(id, ringing('d', 1, 1))
        await sessions().append(id, state('c', 2, 2))
        await relays(sessions(), id, 'c', [3])
        await given().settled()
        await sessions().detach(id, seen.socket, true, 0)
        expect(await sessions().append(id, relay('c', 4))).toBe('kept')
        expect(await sessions().append(id, state('c', 3, 5))).toBe('kept')
        expect(await sessions().append(id, final('c', 4, 6))).toBe('kept')
        expect(await sessions().inCall(id)).toBe(true)
        await sessions().appendRung(seen.identity.participant, final('d', 2, 7), [])
        expect(await handedOn(given(), seen)).toEqual([4, 5, 6])
      })

      test(`[PLACE5] for ${who} one what no socket was sent yet is kept, too`, async () => {
        const identity = identityOf({ extended })
        const socket = createSocket()
        const { sessionId: id } = identity
        const open = await sessions().open(identity, socket, 0)
        await stepsOf(sessions()).hold(id, 'c', true)
        await relays(sessions(), id, 'c', [1, 2])
        await sessions().detach(id, socket, true, 0)
        await relays(sessions(), id, 'c', [3])
        expect(await handedOn(given(), { ...open, identity, id, socket })).toEqual([1, 2, 3])
      })

      test(`[PLACE5] for ${who} one what was handed to its socket and not written before it closed is kept`, async () => {
        const seen = await openReady(sessions(), { extended })
        await stepsOf(sessions()).hold(seen.id, 'c', true)
        await relays(sessions(), seen.id, 'c', [1, 2])
        await given().settled()
        seen.socket.writes = false
        await relays(sessions(), seen.id, 'c', [3])
        await given().settled()
        await sessions().detach(seen.id, seen.socket, true, 0)
        expect(await handedOn(given(), seen)).toEqual([3])
      })

      test(`[PLACE5] for ${who} one 256 messages or 256 KiB are kept, and what is more is refused`, async () => {
        for (const [pad, most] of [
          [0, 256],
          [32_000, 8],
        ] as const) {
          const seen = await openReady(sessions(), { extended })
          await stepsOf(sessions()).hold(seen.id, 'c', true)
          await sessions().detach(seen.id, seen.socket, true, 0)
          const results = await relays(sessions(), seen.id, 'c', upTo(most + 1), pad)
          expect(results).toEqual([...upTo(most).map(() => 'kept'), 'full'] as never)
          expect(await handedOn(given(), seen)).toEqual(upTo(most))
        }
      })

      test(`[PLACE5] while ${who} one has yet to hear a state, it is not told the next one`, async () => {
        for (const isHeard of [true, false]) {
          const seen = await openReady(sessions(), { extended })
          await stepsOf(sessions()).hold(seen.id, 'c', true)
          if (isHeard) {
            await sessions().append(seen.id, state('c', 1, 1))
            await given().settled()
            await sessions().prove(seen.id, 1)
          }
          await sessions().detach(seen.id, seen.socket, false, 0)
          expect(await sessions().append(seen.id, state('c', 2, 2))).toBe('kept')
          expect(await sessions().append(seen.id, state('c', 3, 3))).toBe('dropped')
          expect(await sessions().append(seen.id, state('d', 1, 4))).toBe('kept')
          // Of another call, and to one that has a socket: always.
          const back = await comeBack(sessions(), seen, isHeard ? 1 : 0)
          await given().settled()
          if (back !== undefined) expect(numbersOf(back.socket)).toEqual([2, 4])
        }
      })

      test(`[END5] of ${who} one it is known that it was closed, until its session has another`, async () => {
        const wasClosed = (id: string) => sessions().wasClosed(id, 'its node')
        for (const [isOver, closed] of [
          [false, undefined],
          [true, undefined],
          [false, true],
        ] as const) {
          const seen = await openReady(sessions(), { extended })
          await stepsOf(sessions()).hold(seen.id, 'c', true)
          expect(await wasClosed(seen.id)).toBe(false)
          await sessions().detach(seen.id, seen.socket, isOver, 0, { closed })
          expect(await wasClosed(seen.id)).toBe(closed ?? isOver)
          const back = await comeBack(sessions(), seen, 0)
          expect(back !== undefined).toBe(extended && !isOver)
          if (back !== undefined) expect(await wasClosed(seen.id)).toBe(false)
        }
        expect(await wasClosed(identityOf({}).sessionId)).toBe(false)
      })

      test(`[PEER1] of ${who} one it is known that it was told to come back, until its session has another`, async () => {
        const seen = await openReady(sessions(), { extended })
        const awaitedMs = (id = seen.id) => sessions().awaitedMs(id, 'its node')
        // A node that gets the question where another one has the socket says that its client is back.
        const isBack = (answer: unknown) =>
          expect(answer).toBeOneOf(given().isShared === true ? ['back', undefined] : [undefined])
        await stepsOf(sessions()).hold(seen.id, 'c', true)
        isBack(await awaitedMs())
        await sessions().detach(seen.id, seen.socket, false, 0, { awaitedMs: 1_100 })
        expect(await awaitedMs()).toBe(1_100)
        const back = await comeBack(sessions(), seen, 0)
        expect(back !== undefined).toBe(extended)
        if (back === undefined) return
        isBack(await awaitedMs())
        await sessions().detach(back.id, back.socket, false, 0)
        expect(await awaitedMs()).toBeUndefined()
        expect(await awaitedMs(identityOf({}).sessionId)).toBeUndefined()
      })

      test(`${extended ? 'an extended' : 'a base'} one that has nothing left is forgotten`, async () => {
        const seen = await openReady(sessions(), { extended })
        await relays(sessions(), seen.id, 'c', [1])
        await given().settled()
        await sessions().detach(seen.id, seen.socket, true, 0)
        expect(await sessions().append(seen.id, relay('c', 2))).toBe('gone')
        const rung = await openReady(sessions(), { extended })
        await sessions().append(rung.id, ringing('d', 1, 1))
        await sessions().detach(rung.id, rung.socket, true, 0)
        await sessions().appendRung(rung.identity.participant, final('d', 2, 2), [])
        const { participant, deviceId } = rung.identity
        await sessions().collectFinals((await openReady(sessions(), { participant, deviceId })).identity)
        expect(await sessions().append(rung.id, relay('d', 2))).toBe('gone')
        const holder = await openReady(sessions(), { extended })
        await stepsOf(sessions()).hold(holder.id, 'c', true)
        await sessions().detach(holder.id, holder.socket, true, 0)
        expect(await sessions().append(holder.id, relay('c', 2))).toBe('kept')
        await stepsOf(sessions()).release(holder.id, 'c')
        expect(await sessions().append(holder.id, relay('c', 3))).toBe('gone')
      })

      test(`[WS4] ${who} one that rang is told of the end where it comes back, once`, async () => {
        const seen = await openReady(sessions(), { extended })
        await sessions().append(seen.id, ringing('c', 1, 1))
        await given().settled()
        await sessions().detach(seen.id, seen.socket, true, 0)
        const { participant, deviceId } = seen.identity
        await sessions().appendRung(participant, final('c', 2, 2), [])
        const heard: number[][] = []
        for (const device of ['another', deviceId, deviceId]) {
          const back = await openReady(sessions(), { participant, deviceId: device })
          await sessions().collectFinals(back.identity)
          await given().settled()
          heard.push(numbersOf(back.socket))
        }
        expect(heard).toEqual([[], [2], []])
      })

      test(`[WS4] for ${who} one the end of a ring that was not written before it closed is kept`, async () => {
        const seen = await openReady(sessions(), { extended })
        await sessions().append(seen.id, ringing('c', 1, 1))
        await given().settled()
        seen.socket.writes = false
        const { participant, deviceId } = seen.identity
        await sessions().appendRung(participant, final('c', 2, 2), [])
        await given().settled()
        await sessions().detach(seen.id, seen.socket, true, 0)
        const back = await openReady(sessions(), { participant, deviceId })
        await sessions().collectFinals(back.identity)
        await given().settled()
        expect(numbersOf(back.socket)).toEqual([2])
      })
    }

    for (const isDetached of [true, false]) {
      const when = isDetached ? 'is gone' : 'is closed, and was not left yet,'
      test(`[WS4] [RES2] a session whose socket ${when} takes nothing from another one, whose client resumes exactly`, async () => {
        const seen = await openReady(sessions())
        const { participant, deviceId } = seen.identity
        await sessions().append(seen.id, ringing('c', 1, 1))
        await given().settled()
        await sessions().detach(seen.id, seen.socket, false, 0)
        await sessions().appendRung(participant, final('c', 2, 2), [])
        // The client gave this socket up before its node had looked what there was.
        const late = await openReady(sessions(), { participant, deviceId })
        await stepsOf(sessions()).hold(late.id, 'd', true)
        await given().settled()
        late.socket.isClosed = true
        if (isDetached) await sessions().detach(late.id, late.socket, false, 0)
        await sessions().collectFinals(late.identity)
        const back = await comeBack(sessions(), seen, 1)
        expect(back && numbersOf(back.socket)).toEqual([2])
      })
    }
  })
}

/** The messages of a call for the next holder of the place. */
async function handedOn({ sessions, settled }: SessionsHarness, { identity, id }: Seen, call = 'c'): Promise<number[]> {
  const { participant, deviceId } = identity
  const taker = await openReady(sessions, { participant, deviceId })
  await sessions.move(call, id, taker.id, true)
  await settled()
  return numbersOf(taker.socket)
}
