import { expect, test } from 'bun:test'
import { withLoopback } from './support/stage.ts'

/* [SAS1] on real connections: who sees the same code, who does not, and when it changes. */

const inPage = withLoopback()
const code = /^\d{5}( \d{5}){11}$/

test('[SAS1] both sides have the same code when they are connected and not before; an ICE restart keeps it', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, flowing, until } = window.loopback
      // A busy machine may take longer than usual to connect, and that would be another offer.
      const patient = { connectTimeoutMs: 60_000 }
      const pair = createPair('audio', { outgoing: patient, incoming: patient })
      const both = [pair.caller, pair.callee]
      const codes = () => both.map(({ securityCode }) => securityCode)
      const told: (string | undefined)[] = []
      pair.caller.on('securityCode', (code) => told.push(code))
      pair.wire.hold('outgoing')
      await Promise.all(both.map((media) => media.start()))
      pair.accept()
      await until(() => pair.wire.sent.length > 0)
      const early = codes().some((code) => code !== undefined)
      pair.wire.release('outgoing')
      await Promise.all(both.map((media) => flowing(media)))
      await until(() => codes().every(Boolean))
      const first = codes()
      const ufrag = () => /a=ice-ufrag:(\S+)/.exec(pair.caller.connection?.currentLocalDescription?.sdp ?? '')?.[1]
      const before = ufrag()
      await pair.caller.restart()
      await until(() => {
        const { signalingState, connectionState } = pair.caller.connection as RTCPeerConnection
        return ufrag() !== before && signalingState === 'stable' && connectionState === 'connected'
      })
      const kept = codes()
      const shown = both.map(({ state }) => state.securityCode)
      pair.close()
      return { early, first, kept, shown, told, closed: codes(), errors: pair.errors }
    })
    expect(found.errors).toEqual([])
    expect(found.early).toBe(false)
    const [mine, theirs] = found.first
    expect(mine).toMatch(code)
    expect(theirs).toBe(mine!)
    expect(found.kept).toEqual(found.first)
    expect(found.shown).toEqual(found.first)
    expect(found.told).toEqual([mine, undefined])
    expect(found.closed).toEqual([undefined, undefined])
  })
}, 240_000)

test('[SAS1] the peer’s page is loaded again: the code goes, and both have a new one', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, flowing, until } = window.loopback
      const pair = createPair('audio')
      await Promise.all([pair.caller.start(), pair.callee.start()])
      pair.accept()
      await Promise.all([flowing(pair.caller), flowing(pair.callee)])
      await until(() => pair.caller.securityCode !== undefined)
      const first = pair.caller.securityCode
      const told: (string | undefined)[] = []
      pair.caller.on('securityCode', (code) => told.push(code))
      const { call, media } = pair.reload('incoming', pair.callee)
      void media.start()
      call.resync(true)
      await flowing(media)
      await until(() => pair.caller.securityCode !== undefined && pair.caller.securityCode === media.securityCode)
      const again = media.securityCode
      pair.close()
      return { first, again, told, errors: pair.errors }
    })
    expect(found.errors).toEqual([])
    expect(found.again).toMatch(code)
    expect(found.again).not.toBe(found.first!)
    expect(found.told.slice(0, 2)).toEqual([undefined, found.again])
  })
}, 240_000)

test('[SAS1] somebody between the two, with a connection to each, gives them different codes', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createBetween, flowing, until } = window.loopback
      const { caller, callee, errors, close } = createBetween()
      await Promise.all([caller.start(), callee.start()])
      // They hear each other, and notice nothing else.
      await Promise.all([flowing(caller), flowing(callee)])
      await until(() => [caller, callee].every(({ state, securityCode }) => state.receiving.audio && securityCode))
      const codes = [caller.securityCode, callee.securityCode]
      close()
      return { codes, errors }
    })
    expect(found.errors).toEqual([])
    for (const one of found.codes) expect(one).toMatch(code)
    expect(found.codes[0]).not.toBe(found.codes[1]!)
  })
}, 240_000)

test('[SAS1] an offer or an answer with a second fingerprint is refused, and the call goes on', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, flowing, until } = window.loopback
      const patient = { connectTimeoutMs: 60_000 }
      const pair = createPair('audio', { outgoing: patient, incoming: patient })
      const both = [pair.caller, pair.callee]
      await Promise.all(both.map((media) => media.start()))
      pair.accept()
      await Promise.all(both.map((media) => flowing(media)))
      await until(() => both.every(({ securityCode }) => securityCode))
      const before = both.map(({ connection, securityCode }) => ({ connection, securityCode }))
      const { sent } = pair.wire
      const second = `a=fingerprint:sha-256 ${Array(32).fill('AB').join(':')}\r\n`
      const spoil = <T extends { sdp: string }>(payload: T) => ({ ...payload, sdp: payload.sdp + second })

      const offer = sent.find(({ signal }) => signal.event === 'offer')?.signal
      if (offer?.event !== 'offer') throw new Error('no offer')
      pair.wire.repeat('outgoing', { ...offer, payload: spoil(offer.payload) })
      await until(() => pair.errors.length === 1)
      const states = both.map(({ connection }) => connection?.signalingState)

      // The callee's answer to a restart is spoilt; the next one is not.
      pair.wire.hold('incoming')
      const answers = sent.filter(({ signal }) => signal.event === 'answer').length
      await pair.caller.restart()
      await until(() => sent.filter(({ signal }) => signal.event === 'answer').length > answers)
      pair.wire.release('incoming', (signals) =>
        signals.map((signal) => (signal.event === 'answer' ? { ...signal, payload: spoil(signal.payload) } : signal)),
      )
      await until(() => pair.errors.length === 2)
      const waits = pair.caller.connection?.signalingState
      await pair.caller.restart()
      await until(() => pair.caller.connection?.signalingState === 'stable')
      await Promise.all(both.map((media) => flowing(media)))
      const after = both.map(({ connection, securityCode }) => ({ connection, securityCode }))
      const isSame = after.every((now, i) => now.connection === before[i]?.connection)
      const isKept = after.every((now, i) => now.securityCode === before[i]?.securityCode)
      pair.close()
      return { states, waits, isSame, isKept, errors: pair.errors }
    })
    const refused = 'Negotiation failed (Error: A description has several fingerprints)'
    expect(found).toEqual({
      states: ['stable', 'stable'],
      waits: 'have-local-offer',
      isSame: true,
      isKept: true,
      errors: [`incoming: ${refused}`, `outgoing: ${refused}`],
    })
  })
}, 240_000)
