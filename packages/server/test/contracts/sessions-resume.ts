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
import type { ResumeRequest, SessionIdentity } from '../../src/ports/sessions.ts'
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

const { ringing, state, stop, notice } = pushes

/** Coming back: exactly, or not at all [RES1, RES2]. */
export function registerResumeRules(given: () => SessionsHarness): void {
  const sessions = () => given().sessions
  const drop = ({ id, socket }: Seen, at = 0) => sessions().detach(id, socket, false, at)

  /** A session that got five pushes, of which the third is a state. */
  async function fiveTold(): Promise<Seen> {
    const seen = await openReady(sessions())
    await relays(sessions(), seen.id, 'c', [1, 2])
    await sessions().append(seen.id, state('c', 7, 3))
    await relays(sessions(), seen.id, 'c', [4, 5])
    await given().settled()
    return seen
  }

  describe('a resume that is whole', () => {
    for (const seq of [0, 1, 2, 3, 4, 5]) {
      test(`[RES1] after seq ${seq}: every push since, once, in order and under its number`, async () => {
        const seen = await fiveTold()
        await drop(seen)
        await relays(sessions(), seen.id, 'c', [6])
        const back = await comeBack(sessions(), seen, seq)
        await relays(sessions(), seen.id, 'c', [7])
        await given().settled()
        expect(back?.epoch).toBe(seen.epoch)
        expect(back && numbersOf(back.socket)).toEqual(upTo(7, seq + 1))
        expect(back && seqsOf(back.socket)).toEqual(upTo(7, seq + 1))
        expect(back?.socket.pushedSeqs).toEqual(upTo(7, seq + 1))
        const versions = back?.socket.told.filter(({ version }) => version !== undefined)
        expect(versions?.map(({ version }) => version)).toEqual(seq < 3 ? [7] : [])
        expect(numbersOf(seen.socket)).toEqual(upTo(5))
      })
    }

    test('[RES1] what comes before it is ready waits for its turn', async () => {
      const seen = await fiveTold()
      await drop(seen)
      const socket = createSocket()
      expect(await sessions().resume(resumeOf(seen, 4), seen.identity, socket, 0)).toBeDefined()
      expect(await relays(sessions(), seen.id, 'c', [6])).toEqual(['kept'])
      await given().settled()
      expect(socket.told).toEqual([])
      await sessions().ready(seen.id)
      expect(await relays(sessions(), seen.id, 'c', [7])).toEqual(['sent'])
      await given().settled()
      expect(numbersOf(socket)).toEqual([5, 6, 7])
    })

    test('[RES1] of a session that was told nothing', async () => {
      const seen = await openReady(sessions())
      await drop(seen)
      const back = await comeBack(sessions(), seen, 0)
      expect(back).toBeDefined()
      expect(await relays(sessions(), seen.id, 'c', [1])).toEqual(['sent'])
      await given().settled()
      expect(back && seqsOf(back.socket)).toEqual([1])
    })

    test('[RES1] of a session that was lost before it was ready', async () => {
      const identity = identityOf()
      const first = createSocket()
      const { epoch } = await sessions().open(identity, first, 0)
      await relays(sessions(), identity.sessionId, 'c', [1, 2])
      await sessions().detach(identity.sessionId, first, false, 0)
      const seen = {
        epoch,
        identity,
        id: identity.sessionId,
        socket: first,
        upstream: { handled: 0, final: 0, replies: [], dropped: 0 },
      }
      const back = await comeBack(sessions(), seen, 0)
      await given().settled()
      expect(first.told).toEqual([])
      expect(back && numbersOf(back.socket)).toEqual([1, 2])
    })

    test('[RES1] again and again, also from further back than the last time', async () => {
      let seen = await fiveTold()
      for (const [seq, n] of [
        [5, 6],
        [3, 7],
        [0, 8],
        [8, 9],
      ] as const) {
        await drop(seen)
        const back: Seen | undefined = await comeBack(sessions(), seen, seq)
        if (back === undefined) throw new Error(`after ${seq} it is refused`)
        await relays(sessions(), seen.id, 'c', [n])
        await given().settled()
        expect(numbersOf(back.socket)).toEqual(upTo(n, seq + 1))
        expect(await sessions().liveOf(seen.identity.participant)).toEqual([seen.id])
        seen = back
      }
    })

    test('[RES1] the newest wins: the older socket gets nothing more, and its end changes nothing', async () => {
      const seen = await fiveTold()
      expect(await sessions().sinkToReplace(seen.id, seen.identity)).toBe(seen.socket)
      const back = await comeBack(sessions(), seen, 5)
      expect(await drop(seen)).toBe(false)
      expect(await sessions().sinkOf(seen.id)).toBe(back?.socket as never)
      expect(await sessions().liveOf(seen.identity.participant)).toEqual([seen.id])
      await relays(sessions(), seen.id, 'c', [6])
      await given().settled()
      expect(numbersOf(seen.socket)).toEqual(upTo(5))
      expect(back && numbersOf(back.socket)).toEqual([6])
    })

    test('[ORD1] a socket knows whether its session has moved to another one, and leaving it is no move', async () => {
      const seen = await fiveTold()
      const moved = async ({ id, socket }: Seen) => sessions().hasMoved(id, socket)
      expect(await moved(seen)).toBe(false)
      const back = (await comeBack(sessions(), seen, 5))!
      expect([await moved(seen), await moved(back)]).toEqual([true, false])
      await drop(back)
      expect(await moved(back)).toBe(false)
    })

    test('[RES1] a connection that its client gave up takes the session from nobody', async () => {
      const seen = await fiveTold()
      const givenUp = { ...createSocket(), isClosed: true }
      const resume = async () => sessions().resume(resumeOf(seen, 5), seen.identity, givenUp, 0)
      expect(await resume().then(String, (error) => error.message)).toMatch(/closed meanwhile/)
      await relays(sessions(), seen.id, 'c', [6])
      await given().settled()
      expect(numbersOf(seen.socket)).toEqual(upTo(6))
    })

    test('[RES1] a socket of before that was long on its way takes the session from nobody who has received more', async () => {
      const seen = await fiveTold()
      await sessions().prove(seen.id, 4)
      const late = createSocket()
      const asked = async () => sessions().sinkToReplace(seen.id, seen.identity, late, 3)
      expect(await asked().then(String, (error) => error.message)).toMatch(/newer socket/)
      expect([late.closes, seen.socket.closes]).toEqual([[4409], []])
      await relays(sessions(), seen.id, 'c', [6])
      await given().settled()
      expect(numbersOf(seen.socket)).toEqual(upTo(6))
      // A resume with as much comes from the same client, and so is any other where the socket gives no sign of life.
      expect(await sessions().sinkToReplace(seen.id, seen.identity, createSocket(), 4)).toBe(seen.socket)
      seen.socket.probe = async () => false
      expect(await sessions().sinkToReplace(seen.id, seen.identity, createSocket(), 3)).toBe(seen.socket)
      expect(numbersOf((await comeBack(sessions(), seen, 3))!.socket)).toEqual(upTo(6, 4))
    })

    test('[EXT4] a socket that was lost has to be retired first, as long as something that came on it is under way', async () => {
      for (const isBusy of [true, false]) {
        const seen = await fiveTold()
        seen.socket.isBusy = isBusy
        await drop(seen)
        const before = await sessions().sinkToReplace(seen.id, seen.identity)
        expect(before).toBe(isBusy ? seen.socket : undefined)
        await comeBack(sessions(), seen, 5)
        expect(await sessions().sinkToReplace(seen.id, seen.identity)).not.toBe(seen.socket)
      }
    })

    test('[RES2] a base session is not resumed, and is left alone', async () => {
      const seen = await openReady(sessions(), { extended: false })
      const { participant, deviceId } = seen.identity
      const identity = identityOf({ participant, deviceId })
      expect(await sessions().sinkToReplace(seen.id, identity)).toBeUndefined()
      const request = { sessionId: seen.id, epoch: seen.epoch, seq: 0 }
      expect(await sessions().resume(request, identity, createSocket(), 0)).toBeUndefined()
      await relays(sessions(), seen.id, 'c', [1])
      await given().settled()
      expect(numbersOf(seen.socket)).toEqual([1])
    })

    test('[EXT4] its requests go on where they were', async () => {
      const seen = await openReady(sessions())
      expect(seen.upstream).toEqual({ handled: 0, final: 0, replies: [], dropped: 0 })
      Object.assign(seen.upstream, { handled: 3, final: 3 })
      seen.upstream.replies.push({ n: 3, text: 'a reply' })
      await drop(seen)
      const back = await comeBack(sessions(), seen, 0)
      expect(back?.upstream).toEqual({ handled: 3, final: 3, replies: [{ n: 3, text: 'a reply' }], dropped: 0 })
      const other = await openReady(sessions(), { participant: seen.identity.participant })
      expect(other.upstream).toEqual({ handled: 0, final: 0, replies: [], dropped: 0 })
    })

    test('[PLACE2] it has its places, and rings no second time', async () => {
      const seen = await openReady(sessions())
      await sessions().append(seen.id, ringing('c', 1, 1))
      await stepsOf(sessions()).hold(seen.id, 'd', true)
      await drop(seen)
      expect(await sessions().inCall(seen.id)).toBe(true)
      const back = await comeBack(sessions(), seen, 0)
      expect(await sessions().append(seen.id, ringing('c', 1, 2))).toBe('dropped')
      expect(await sessions().holdsAny(seen.id)).toBe(true)
      await given().settled()
      expect(back && numbersOf(back.socket)).toEqual([1])
    })

    test('[EXT5] notices are in its log as everything else', async () => {
      const seen = await openReady(sessions())
      await drop(seen)
      expect(await sessions().append(seen.id, notice('c', 3, 1))).toBe('kept')
      expect(await sessions().append(seen.id, notice('', undefined, 2))).toBe('kept')
      const back = await comeBack(sessions(), seen, 0)
      await given().settled()
      expect(back && numbersOf(back.socket)).toEqual([1, 2])
    })

    test('[RES1] within the window after its loss; with a socket the window does not count', async () => {
      const start = 5_000_000
      const seen = await fiveTold()
      expect(await comeBack(sessions(), seen, 5, start)).toBeDefined()
      const again = (await comeBack(sessions(), seen, 5, start + 10 * resumeWindowMs)) ?? seen
      await drop(again, start)
      expect(await comeBack(sessions(), seen, 5, start + resumeWindowMs)).toBeDefined()
    })

    test('[RES1] the longest way back that the log has', async () => {
      const seen = await openReady(sessions())
      await relays(sessions(), seen.id, 'c', upTo(600))
      await drop(seen)
      const back = await comeBack(sessions(), seen, 88)
      await given().settled()
      expect(back && numbersOf(back.socket)).toEqual(upTo(600, 89))
    })
  })

  describe('a resume that is refused', () => {
    /** Refused, and the session is over: nobody can come back to it any more. */
    async function refused(seen: Seen, request: ResumeRequest, at = 0) {
      const socket = createSocket()
      expect(await sessions().resume(request, seen.identity, socket, at)).toBeUndefined()
      await given().settled()
      expect(socket.told).toEqual([])
      expect(await comeBack(sessions(), seen, 5)).toBeUndefined()
      const next = await openReady(sessions(), { participant: seen.identity.participant })
      await relays(sessions(), next.id, 'c', [1])
      await given().settled()
      expect(seqsOf(next.socket)).toEqual([1])
    }
    async function lostAfterFive(): Promise<Seen> {
      const seen = await fiveTold()
      await drop(seen)
      return seen
    }

    test('[RES2] of a session that there is not', async () => {
      const seen = { ...(await lostAfterFive()), id: 'nobody' }
      const socket = createSocket()
      expect(await sessions().resume(resumeOf(seen, 5), seen.identity, socket, 0)).toBeUndefined()
      expect(await sessions().sinkToReplace('nobody', seen.identity)).toBeUndefined()
    })

    test('[RES2] of another epoch', async () => {
      for (const epoch of ['', 'another']) {
        const seen = await lostAfterFive()
        await refused(seen, { ...resumeOf(seen, 5), epoch })
      }
    })

    test('[RES2] after a seq that the log never reached, or that is none', async () => {
      for (const seq of [6, 1_000_000, -1, Number.NaN]) {
        const seen = await lostAfterFive()
        await refused(seen, resumeOf(seen, seq))
      }
      const untold = await openReady(sessions())
      await drop(untold)
      await refused(untold, resumeOf(untold, 1))
    })

    test('[RES2] after a seq that was given out when nobody was there: another node told it, and its log is lost', async () => {
      const seen = await lostAfterFive()
      await relays(sessions(), seen.id, 'c', [6, 7])
      await refused(seen, resumeOf(seen, 6))
    })

    test('[RES2] where the log was trimmed', async () => {
      const seen = await openReady(sessions())
      await relays(sessions(), seen.id, 'c', upTo(600))
      await drop(seen)
      await refused(seen, resumeOf(seen, 87))
    })

    test('[RES2] where the log was trimmed while nobody was there', async () => {
      const seen = await lostAfterFive()
      await relays(sessions(), seen.id, 'c', upTo(600))
      await refused(seen, resumeOf(seen, 5))
    })

    test('[RES2] where something went to a taker', async () => {
      for (const seq of [0, 5]) {
        const seen = await openReady(sessions())
        await stepsOf(sessions()).hold(seen.id, 'c', true)
        await relays(sessions(), seen.id, 'c', upTo(5))
        await drop(seen)
        const taker = await openReady(sessions(), { participant: seen.identity.participant })
        await sessions().move('c', seen.id, taker.id, true)
        await refused(seen, resumeOf(seen, seq))
      }
    })

    test('[RES1] but not where the taker got nothing', async () => {
      const seen = await fiveTold()
      await stepsOf(sessions()).hold(seen.id, 'c', true)
      await sessions().prove(seen.id, 5)
      await drop(seen)
      const taker = await openReady(sessions(), { participant: seen.identity.participant })
      await sessions().move('c', seen.id, taker.id, true)
      await stepsOf(sessions()).release(seen.id, 'c')
      const back = await comeBack(sessions(), seen, 2)
      await given().settled()
      expect(back && numbersOf(back.socket)).toEqual([3, 4, 5])
      expect(numbersOf(taker.socket)).toEqual([])
    })

    test('[RES1] of a session that its client closed', async () => {
      const seen = await fiveTold()
      await stepsOf(sessions()).hold(seen.id, 'c', true)
      await sessions().detach(seen.id, seen.socket, true, 0)
      await refused(seen, resumeOf(seen, 5))
    })

    test('[RES1] after the window, swept or not', async () => {
      const start = 5_000_000
      const seen = await fiveTold()
      await drop(seen, start)
      await refused(seen, resumeOf(seen, 5), start + resumeWindowMs + 1)
      const swept = await fiveTold()
      await drop(swept, start)
      await sessions().sweep(start + Math.max(windowMs, resumeWindowMs) + 1)
      await refused(swept, resumeOf(swept, 5), start + resumeWindowMs + 1)
    })

    test('[RES2] of a base session', async () => {
      const seen = await openReady(sessions(), { extended: false })
      await stepsOf(sessions()).hold(seen.id, 'c', true)
      await drop(seen)
      expect(await comeBack(sessions(), seen, 0)).toBeUndefined()
      const before = identityOf({ extended: false })
      await stepsOf(sessions()).openDetached(before, 0)
      const request = { sessionId: before.sessionId, epoch: seen.epoch, seq: 0 }
      expect(await sessions().resume(request, before, createSocket(), 0)).toBeUndefined()
    })

    test('[RES2] and what it was not proven to have is there for who takes its places', async () => {
      const seen = await fiveTold()
      await stepsOf(sessions()).hold(seen.id, 'c', true)
      await sessions().prove(seen.id, 3)
      await drop(seen)
      expect(await comeBack(sessions(), seen, 99)).toBeUndefined()
      const taker = await openReady(sessions(), { participant: seen.identity.participant })
      await sessions().move('c', seen.id, taker.id, true)
      await given().settled()
      expect(numbersOf(taker.socket)).toEqual([4, 5])
    })
  })

  describe('a resume by somebody else', () => {
    const strangers: Record<string, (identity: SessionIdentity) => Partial<SessionIdentity>> = {
      'another user': () => ({ participant: somebody() }),
      'another role': ({ participant }) => ({ participant: { ...participant, role: 'customer' } }),
      'another product': ({ participant }) => ({ participant: { ...participant, product: 'bank' } }),
      'another device': () => ({ deviceId: 'tablet' }),
      'no device': () => ({ deviceId: null }),
    }
    for (const [who, differs] of Object.entries(strangers)) {
      for (const isLost of [true, false]) {
        test(`[RES2] ${who} is refused and touches nothing, ${isLost ? 'of a lost session' : 'of a live one'}`, async () => {
          const seen = await fiveTold()
          let retired = 0
          seen.socket.retire = async () => void retired++
          await stepsOf(sessions()).hold(seen.id, 'c', true)
          if (isLost) await drop(seen)
          const stranger = { ...identityOf(), ...seen.identity, ...differs(seen.identity) }
          for (const request of [resumeOf(seen, 5), resumeOf(seen, 99), { ...resumeOf(seen, 5), epoch: 'another' }]) {
            expect(await sessions().sinkToReplace(seen.id, stranger)).toBeUndefined()
            const socket = createSocket()
            expect(await sessions().resume(request, stranger, socket, 0)).toBeUndefined()
            expect(socket.told).toEqual([])
          }
          expect(retired).toBe(0)
          expect(await sessions().sinkOf(seen.id)).toBe(isLost ? undefined : (seen.socket as never))
          expect(await sessions().holdsAny(seen.id)).toBe(true)
          const back = await comeBack(sessions(), seen, 2)
          await given().settled()
          expect(back && numbersOf(back.socket)).toEqual([3, 4, 5])
        })
      }
    }
  })
}

/** Whose ring a client has is known by its pongs, and by the seq with which it comes back [TRACE1]. */
export function registerSeenRingRules(given: () => SessionsHarness): void {
  const sessions = () => given().sessions

  test('[RES1] [TRACE1] a resume names the calls whose ring its client has, and no pong proved: each once', async () => {
    let seen = await openReady(sessions())
    const calls = Array.from({ length: 4 }, () => `${crypto.randomUUID()}shop`)
    const [proven = '', over = '', rings = '', unseen = ''] = calls
    await sessions().append(seen.id, ringing(proven, 1, 1))
    await sessions().prove(seen.id, 1)
    await sessions().append(seen.id, ringing(over, 1, 2))
    await sessions().append(seen.id, stop(over, 2, 3))
    await sessions().append(seen.id, ringing(rings, 1, 4))
    await sessions().append(seen.id, ringing(unseen, 1, 5))
    await given().settled()
    const resume = async (seq: number) => {
      await sessions().detach(seen.id, seen.socket, false, 0)
      const socket = createSocket()
      const open = await sessions().resume(resumeOf(seen, seq), seen.identity, socket, 0)
      if (open === undefined) throw new Error('it is refused')
      await sessions().ready(seen.id)
      await given().settled()
      seen = { ...seen, ...open, socket }
      return open.rings
    }
    expect(await resume(4)).toEqual([over, rings])
    expect(numbersOf(seen.socket)).toEqual([5])
    expect(await resume(4)).toEqual([])
    expect(await resume(5)).toEqual([unseen])
    expect(await resume(2)).toEqual([])
  })
}
