import { describe, expect, test } from 'bun:test'
import type { Push } from '../../src/ports/push.ts'
import { createSocket, identityOf, openReady, somebody, stepsOf } from '../../src/ports/sessions.fixture.ts'
import type { Sessions } from '../../src/ports/sessions.ts'
import { comeBack, numbersOf, pushes, type SessionsHarness, upTo } from './session-parts.ts'

const { ringing, stop, final } = pushes

const keptOf = async (sessions: Sessions, id: string, call: string) =>
  (await stepsOf(sessions).answer(id, call, true)) || []

/** The messages for a call before it is accepted, and what several processes say of it at once. */
export function registerCallRules(given: () => SessionsHarness): void {
  const sessions = () => given().sessions
  const relay = (n: number, pad = 0): Push => pushes.relay('c', n, pad)

  describe('relays before the accept', () => {
    test('[REL2] they are kept in order, and taken again and again until the place is released', async () => {
      const { id } = await openReady(sessions())
      await stepsOf(sessions()).hold(id, 'c', true)
      for (const n of [1, 2, 3]) expect(await sessions().keep(id, relay(n))).toBe('kept')
      const texts = [1, 2, 3].map((n) => relay(n).text)
      for (const _ of [1, 2]) expect((await keptOf(sessions(), id, 'c')).map(({ text }) => text)).toEqual(texts)
      expect(await sessions().keep(id, relay(4))).toBe('closed')
      await stepsOf(sessions()).release(id, 'c')
      expect(await keptOf(sessions(), id, 'c')).toEqual([])
    })

    test('[REL2] what another call or another session keeps is apart', async () => {
      const [one, two] = [await openReady(sessions()), await openReady(sessions())]
      await sessions().keep(one.id, relay(1))
      await sessions().keep(one.id, pushes.relay('d', 2))
      await sessions().keep(two.id, relay(3))
      expect((await keptOf(sessions(), one.id, 'c')).map(({ text }) => text)).toEqual([relay(1).text])
      expect((await keptOf(sessions(), two.id, 'c')).map(({ text }) => text)).toEqual([relay(3).text])
    })

    test('[REL2] 256 of them, or 256 KiB, and no more', async () => {
      const many = await openReady(sessions())
      for (const n of upTo(256)) expect(await sessions().keep(many.id, relay(n))).toBe('kept')
      expect(await sessions().keep(many.id, relay(257))).toBe('full')
      const long = await openReady(sessions())
      const fit = Math.floor((256 * 1024) / relay(1, 60_000).text.length)
      for (const n of upTo(fit)) expect(await sessions().keep(long.id, relay(n, 60_000))).toBe('kept')
      expect(await sessions().keep(long.id, relay(fit + 1, 60_000))).toBe('full')
      expect(await sessions().keep(long.id, relay(fit + 2))).toBe('kept')
    })

    test('[PLACE2] a place that passes on while it rings takes them along', async () => {
      const participant = somebody()
      const [one, two] = [await openReady(sessions(), { participant }), await openReady(sessions(), { participant })]
      await stepsOf(sessions()).hold(one.id, 'c', true)
      await sessions().keep(one.id, relay(1))
      await sessions().move('c', one.id, two.id, true)
      await sessions().keep(two.id, relay(2))
      expect((await keptOf(sessions(), two.id, 'c')).map(({ text }) => text)).toEqual([relay(1).text, relay(2).text])
    })

    test('a session that is not there keeps nothing', async () => {
      expect(await sessions().keep('nobody', relay(1))).toBe('gone')
      expect(await stepsOf(sessions()).answer('nobody', 'c', true)).toBe(false)
    })
  })

  describe('a gate', () => {
    test('[REL2] what was kept before the accept goes in front of what is sent after it', async () => {
      const seen = await openReady(sessions())
      await stepsOf(sessions()).hold(seen.id, 'c', true, true)
      await sessions().append(seen.id, relay(3))
      await sessions().append(seen.id, relay(4))
      await given().settled()
      expect(numbersOf(seen.socket)).toEqual([])
      await stepsOf(sessions()).openGate(seen.id, 'c', [relay(1), relay(2)])
      await sessions().append(seen.id, relay(5))
      await given().settled()
      expect(numbersOf(seen.socket)).toEqual([1, 2, 3, 4, 5])
    })

    test('relays of other calls and notices pass', async () => {
      const seen = await openReady(sessions())
      await stepsOf(sessions()).hold(seen.id, 'c', true, true)
      await sessions().append(seen.id, pushes.state('c', 2, 1))
      await sessions().append(seen.id, pushes.relay('d', 2))
      await given().settled()
      expect(numbersOf(seen.socket)).toEqual([1, 2])
    })

    test('one that is not there opens to nothing', async () => {
      const seen = await openReady(sessions())
      await stepsOf(sessions()).hold(seen.id, 'c', true)
      await stepsOf(sessions()).openGate(seen.id, 'c', [relay(1)])
      await stepsOf(sessions()).openGate('nobody', 'c', [relay(1)])
      await given().settled()
      expect(numbersOf(seen.socket)).toEqual([])
    })
  })

  describe('[BAL1] an idle session', () => {
    test('has no ring and no place, and its client has received everything', async () => {
      const { id } = await openReady(sessions(), { extended: true })
      const isIdle = () => sessions().isIdle(id)
      expect(isIdle()).toBe(true)
      await sessions().append(id, ringing('c', 1, 1))
      await sessions().prove(id, 1)
      expect(isIdle()).toBe(false)
      await sessions().append(id, stop('c', 2, 2))
      expect(isIdle()).toBe(false)
      await sessions().prove(id, 2)
      expect(isIdle()).toBe(true)
      await stepsOf(sessions()).hold(id, 'd', true)
      expect(isIdle()).toBe(false)
      await sessions().append(id, final('d', 2, 3))
      await stepsOf(sessions()).release(id, 'd')
      expect(isIdle()).toBe(false)
      await sessions().prove(id, 3)
      expect(isIdle()).toBe(true)
    })

    test('has a socket, and has been told what it found', async () => {
      const identity = identityOf({ extended: true })
      const socket = createSocket()
      await sessions().open(identity, socket, 0)
      expect(sessions().isIdle(identity.sessionId)).toBe(false)
      await sessions().ready(identity.sessionId)
      expect(sessions().isIdle(identity.sessionId)).toBe(true)
      await sessions().detach(identity.sessionId, socket, false, 1)
      expect(sessions().isIdle(identity.sessionId)).toBe(false)
      expect(sessions().isIdle('nobody')).toBe(false)
    })
  })

  describe('a call that is over', () => {
    test('[ORD3] it does not ring any more, whoever is late to say so', async () => {
      const seen = await openReady(sessions())
      await sessions().append(seen.id, ringing('c', 1, 1))
      await sessions().append(seen.id, final('c', 2, 2))
      expect(await sessions().append(seen.id, ringing('c', 1, 3))).toBe('dropped')
      expect(await sessions().append(seen.id, final('c', 2, 4))).toBe('dropped')
      await given().settled()
      expect(numbersOf(seen.socket)).toEqual([1, 2])
      expect(await sessions().inCall(seen.id)).toBe(false)
    })

    test('[ORD3] where it stopped ringing it does not ring again', async () => {
      const seen = await openReady(sessions())
      await sessions().append(seen.id, ringing('c', 1, 1))
      await sessions().append(seen.id, stop('c', 2, 2))
      expect(await sessions().append(seen.id, ringing('c', 1, 3))).toBe('dropped')
      expect(await sessions().inCall(seen.id)).toBe(false)
    })

    test('[PLACE2] whom it stopped ringing for may still take a place in it', async () => {
      const seen = await openReady(sessions())
      await sessions().append(seen.id, ringing('c', 1, 1))
      await sessions().append(seen.id, stop('c', 2, 2))
      await stepsOf(sessions()).hold(seen.id, 'c', true)
      await sessions().append(seen.id, final('c', 5, 3))
      await given().settled()
      expect(numbersOf(seen.socket)).toEqual([1, 2, 3])
    })
  })
}

/** What 0.1.0 did not do: its places passed on without a gate, it kept relays of who had rejected, and sent some after the end. */
export function registerLaterRules(given: () => SessionsHarness): void {
  const sessions = () => given().sessions
  // By 0.1.0 it hears that another one answered, where a node of that looks for what was left.
  test('[WS4] where a socket of the device answered, its next one hears the end, not that another one answered', async () => {
    const rang = await openReady(sessions(), { extended: false })
    const { participant, deviceId } = rang.identity
    await sessions().append(rang.id, ringing('c', 1, 1))
    await given().settled()
    await sessions().detach(rang.id, rang.socket, false, 0)
    const answered = await openReady(sessions(), { participant, deviceId, extended: false })
    await sessions().append(answered.id, ringing('c', 1, 1))
    await stepsOf(sessions()).hold(answered.id, 'c', true)
    await sessions().appendRung(participant, stop('c', 2, 2), [answered.id])
    await given().settled()
    await sessions().detach(answered.id, answered.socket, false, 0)
    await sessions().append(answered.id, final('c', 3, 3))
    await stepsOf(sessions()).release(answered.id, 'c')
    const back = await openReady(sessions(), { participant, deviceId, extended: false })
    await sessions().collectFinals(back.identity)
    await given().settled()
    expect(numbersOf(back.socket)).toEqual([3])
  })

  test('[SRV2] a session that goes on is shown with the version that its client has now', async () => {
    const participant = somebody()
    const before = await openReady(sessions(), { participant, appVersion: '7.1' })
    await sessions().detach(before.id, before.socket, false, 0)
    for (const appVersion of ['7.2', null]) {
      const newer = { ...before, identity: { ...before.identity, appVersion } }
      expect(await comeBack(sessions(), newer, 0)).toBeDefined()
      expect(await sessions().seen(participant)).toMatchObject([{ sessionId: before.id, appVersion }])
    }
  })

  for (const extended of [false, true]) {
    test(`[SRV2] the sessions of a participant as a backend is shown them: ${extended ? 'extended' : 'base'} ones`, async () => {
      const participant = somebody()
      expect(await sessions().seen(participant)).toEqual([])
      const [first, second] = [
        await openReady(sessions(), { extended, participant, deviceId: 'phone', appVersion: '7.1' }),
        await openReady(sessions(), { extended, participant, deviceId: null }),
      ]
      const seen = await sessions().seen(participant)
      const openedAt = expect.any(Number)
      expect(seen).toEqual([
        { sessionId: first.id, deviceId: 'phone', extended, openedAt, appVersion: '7.1', isUnsure: false },
        { sessionId: second.id, deviceId: null, extended, openedAt, appVersion: null, isUnsure: false },
      ])
      expect(await sessions().seen({ ...participant, product: 'bank' })).toEqual([])
      await sessions().detach(first.id, first.socket, false, 0)
      expect((await sessions().seen(participant)).map(({ sessionId }) => sessionId)).toEqual([second.id])
    })
  }

  test('[PING1] a session that leaves pings without an answer is unsure while a call rings there', async () => {
    const participant = somebody()
    const seen = await openReady(sessions(), { participant, deviceId: 'phone' })
    const unsure = async () => (await sessions().seen(participant)).map(({ isUnsure }) => isUnsure)
    expect([await sessions().doubt(seen.id), await unsure()]).toEqual([[], [false]])
    await stepsOf(sessions()).ring(seen.id, 'c')
    expect([await sessions().doubt(seen.id), await unsure()]).toEqual([['c'], [true]])
    await stepsOf(sessions()).ring(seen.id, 'd')
    expect(await sessions().doubt(seen.id)).toEqual(['d'])
    expect(await sessions().doubt(seen.id)).toEqual([])
    sessions().trust(seen.id)
    await given().settled()
    expect([await unsure(), await sessions().doubt(seen.id)]).toEqual([[false], ['c', 'd']])
    await sessions().detach(seen.id, seen.socket, false, 0)
    expect(await sessions().doubt(seen.id)).toEqual([])
  })

  test('[REL2] [PLACE2] a place that passes on with a gate: what waits goes along, and relays are held back', async () => {
    const participant = somebody()
    const [from, to] = [
      await openReady(sessions(), { participant }),
      await openReady(sessions(), { participant, deviceId: 'desk' }),
    ]
    await stepsOf(sessions()).hold(from.id, 'c', true, false, 2)
    await sessions().append(from.id, pushes.state('c', 2, 1))
    await given().settled()
    expect(await sessions().move('c', from.id, to.id, true, 3, true)).toBe(true)
    await sessions().append(to.id, pushes.relay('c', 3))
    // A late delivery of the answer opens it, and does not close it again.
    await stepsOf(sessions()).hold(to.id, 'c', true, true, 2)
    await given().settled()
    expect(numbersOf(to.socket)).toEqual([1])
    await stepsOf(sessions()).openGate(to.id, 'c', [pushes.relay('c', 2)])
    await sessions().append(to.id, pushes.relay('c', 4))
    await given().settled()
    expect(numbersOf(to.socket)).toEqual([1, 2, 3, 4])
  })

  test('[ORD2] what is held back at a gate goes in front of the end of the call, and nothing of it after that', async () => {
    const seen = await openReady(sessions())
    await stepsOf(sessions()).hold(seen.id, 'c', true, true)
    await sessions().append(seen.id, pushes.relay('c', 1))
    await sessions().append(seen.id, pushes.relay('c', 2))
    await sessions().append(seen.id, final('c', 4, 3))
    await stepsOf(sessions()).openGate(seen.id, 'c', [pushes.relay('c', 4)])
    await given().settled()
    expect(numbersOf(seen.socket)).toEqual([1, 2, 3])
  })

  test('[PLACE1] the sessions of a participant that had come by a certain time, whatever became of them since', async () => {
    const participant = somebody()
    const early = await openReady(sessions(), { participant, extended: true }, 1_000)
    const late = await openReady(sessions(), { participant, extended: true }, 3_000)
    const there = async () => [1_000, 2_999, 3_000].map((at) => sessions().liveOf(participant, at))
    const expected = [[early.id], [early.id], [early.id, late.id]]
    expect(await Promise.all(await there())).toEqual(expected)
    await sessions().detach(early.id, early.socket, false, 4_000)
    expect(await comeBack(sessions(), early, 0, 5_000)).toBeDefined()
    await given().emptyStore()
    expect((await Promise.all(await there())).map((ids) => [...ids].sort())).toEqual(expected.map((ids) => ids.sort()))
  })

  test('[WS5] a call rings where the token was good when it began: a new token counts at once, also of who comes back', async () => {
    const participant = somebody()
    const lasting = await openReady(sessions(), { participant })
    const ending = await openReady(sessions(), { participant, expiresAt: 5_000 })
    const rung = async (began: number) => (await sessions().liveOf(participant, undefined, began)).toSorted()
    const [one, both] = [[lasting.id], [lasting.id, ending.id].sort()]
    expect([await rung(4_999), await rung(5_000)]).toEqual([both, one])
    expect((await sessions().liveOf(participant)).toSorted()).toEqual(both)
    await sessions().renew(ending.id, 8_000)
    expect(sessions().heldHere(ending.id)?.expiresAt).toBe(8_000)
    expect([await rung(7_999), await rung(8_000)]).toEqual([both, one])
    await given().emptyStore()
    await given().settled()
    expect([await rung(7_999), await rung(8_000)]).toEqual([both, one])
    const again = await openReady(sessions(), { participant, expiresAt: 5_000 })
    await sessions().detach(again.id, again.socket, false, 100)
    expect(
      await comeBack(sessions(), { ...again, identity: { ...again.identity, expiresAt: 9_000 } }, 0, 200),
    ).toBeDefined()
    expect((await rung(8_500)).includes(again.id)).toBe(true)
    expect(await rung(9_000)).toEqual(one)
  })

  test('[REL2] nothing is held back from who was told of what came after the answer', async () => {
    const [seen, other] = [await openReady(sessions()), await openReady(sessions())]
    for (const { id } of [seen, other]) await stepsOf(sessions()).hold(id, 'c', true, false, 2)
    await sessions().append(seen.id, pushes.state('c', 3, 1))
    await sessions().append(other.id, pushes.state('c', 2, 1))
    for (const { id } of [seen, other]) {
      await stepsOf(sessions()).hold(id, 'c', true, true, 2)
      await sessions().append(id, pushes.relay('c', 2))
    }
    await given().settled()
    expect(numbersOf(seen.socket)).toEqual([1, 2])
    expect(numbersOf(other.socket)).toEqual([1])
  })

  test('[REL2] what a session sent for a call that it then rejected is kept no longer', async () => {
    const seen = await openReady(sessions())
    await sessions().append(seen.id, ringing('c', 1, 1))
    expect(await sessions().keep(seen.id, pushes.relay('c', 2))).toBe('kept')
    await sessions().appendRung(seen.identity.participant, final('c', 2, 3), [seen.id])
    expect(await keptOf(sessions(), seen.id, 'c')).toEqual([])
    await given().settled()
    expect(numbersOf(seen.socket)).toEqual([1])
  })

  test('[PLACE1] who has the place by now is not told that the call was answered elsewhere', async () => {
    const seen = await openReady(sessions())
    await sessions().append(seen.id, ringing('c', 1, 1))
    await stepsOf(sessions()).hold(seen.id, 'c', true, false, 5)
    await sessions().appendRung(seen.identity.participant, pushes.stop('c', 2, 2), ['the session of before'])
    await given().settled()
    expect(numbersOf(seen.socket)).toEqual([1])
    expect(await sessions().append(seen.id, pushes.state('c', 8, 3))).toBe('sent')
  })

  test('[ORD2] no relay comes after the end of its call, though the place is there for a moment longer', async () => {
    for (const extended of [true, false]) {
      const seen = await openReady(sessions(), { extended })
      const forPlace = (n: number) => ({ ...pushes.relay('c', n), forPlace: true })
      await stepsOf(sessions()).hold(seen.id, 'c', true)
      expect(await sessions().append(seen.id, forPlace(1))).toBe('sent')
      await sessions().append(seen.id, final('c', 3, 2))
      // Its sender looks at the call again, and hears how it ended [END4].
      expect(await sessions().append(seen.id, forPlace(3))).toBe('elsewhere')
      expect(await sessions().append(seen.id, pushes.relay('c', 4))).toBe('dropped')
      await stepsOf(sessions()).release(seen.id, 'c')
      expect(await sessions().append(seen.id, forPlace(5))).toBe('elsewhere')
      await given().settled()
      expect(numbersOf(seen.socket)).toEqual([1, 2])
    }
  })

  test('[EXT4] a request that was refused comes again after a later one: kept before the accept, refused again after it', async () => {
    const seen = await openReady(sessions())
    const from = (n: number, pad = 0) => ({ ...pushes.relay('c', n, pad), source: { sessionId: seen.id, n } })
    await sessions().keep(seen.id, from(1))
    expect(await sessions().keep(seen.id, from(2, 256 * 1024))).toBe('full')
    expect(await sessions().keep(seen.id, from(4))).toBe('kept')
    for (const n of [2, 4, 2]) expect(await sessions().keep(seen.id, from(n))).toBe('kept')
    const kept = await keptOf(sessions(), seen.id, 'c')
    expect(kept.map(({ source }) => source?.n)).toEqual([1, 4, 2])
    const peer = await openReady(sessions())
    await stepsOf(sessions()).hold(peer.id, 'c', true, true)
    // Messages that wait for the gate are later than those that go before it.
    expect(await sessions().append(peer.id, from(6))).toBe('kept')
    await stepsOf(sessions()).openGate(peer.id, 'c', kept)
    const results: unknown[] = []
    for (const n of [8, 7, 5]) results.push(await sessions().append(peer.id, from(n)))
    await given().settled()
    // If others serve, too, nothing overtakes a relay that was taken; if one process serves, it comes from nobody [ORD2].
    const isShared = given().isShared === true
    expect(results).toEqual(isShared ? ['sent', 'late', 'late'] : ['sent', 'sent', 'sent'])
    expect(numbersOf(peer.socket)).toEqual([1, 4, 2, 6, 8, ...(isShared ? [] : [7, 5])])
  })

  test('[ORD1] a relay that comes after one that was not taken is not taken either, also where the place passed on', async () => {
    // If one process serves, nothing is on its way.
    if (given().isShared !== true) return
    const sender = await openReady(sessions())
    const from = (n: number, after: number) => ({
      ...{ ...pushes.relay('c', n), forPlace: true },
      source: { sessionId: sender.id, n, after },
    })
    const participant = somebody()
    const first = await openReady(sessions(), { participant })
    await stepsOf(sessions()).hold(first.id, 'c', true)
    expect(await sessions().append(first.id, from(4, 2))).toBe('early')
    expect(await sessions().append(first.id, { ...from(2, 0), source: { sessionId: sender.id, n: 2 } })).toBe('sent')
    for (const result of ['sent', 'kept'] as const) expect(await sessions().append(first.id, from(4, 2))).toBe(result)
    const second = await openReady(sessions(), { participant })
    expect(await sessions().append(second.id, from(6, 5))).toBe('early')
    await sessions().move('c', first.id, second.id, true)
    expect(await sessions().append(second.id, from(7, 6))).toBe('early')
    expect(await sessions().append(second.id, from(6, 4))).toBe('sent')
    expect(await sessions().append(first.id, from(7, 6))).toBe('early')
    expect(await sessions().append(second.id, from(7, 6))).toBe('sent')
    // A base session hears nothing of it, and what comes after it need not wait.
    const base = await openReady(sessions(), { extended: false })
    await stepsOf(sessions()).hold(base.id, 'c', true)
    expect(
      await sessions().append(base.id, { ...from(8, 8), kind: 'media', source: { sessionId: sender.id, n: 8 } }),
    ).toBe('dropped')
    expect(await sessions().append(base.id, from(9, 8))).toBe('sent')
    await given().settled()
    // What the first one is not proven to have goes along.
    expect([numbersOf(first.socket), numbersOf(second.socket)]).toEqual([
      [2, 4],
      [2, 4, 6, 7],
    ])
  })
}
