import { expect, test } from 'bun:test'
import { soon } from '@ringwire/testkit/patience'
import { expectFlow } from '../../../demo/test/support/flow.ts'
import { withLoopback } from './support/stage.ts'

/* Real connections in a real browser; only the service between them is a stub, so that order and loss are the test's. */

const inPage = withLoopback()

test('an offer made while it rings waits for the accept; sound flows both ways in every 500 ms, and pictures flow', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, flowing, measureFlow, until } = window.loopback
      // A busy machine may take longer than usual to connect, and that would be another offer.
      const patient = { connectTimeoutMs: 60_000 }
      const pair = createPair('video', { outgoing: patient, incoming: patient })
      pair.wire.hold('outgoing')
      await Promise.all([pair.caller.start(), pair.callee.start()])
      pair.accept()
      pair.wire.release('outgoing')
      await Promise.all([flowing(pair.caller), flowing(pair.callee)])
      await until(() => [pair.caller, pair.callee].every(({ state }) => state.receiving.audio && state.receiving.video))
      const flows = await Promise.all([measureFlow(pair.caller, 4), measureFlow(pair.callee, 4)])
      const { errors, wire } = pair
      const reported = [pair.callerCall.reported, pair.calleeCall.reported]
      pair.close()
      return { flows, errors, offers: wire.sent.filter(({ signal }) => signal.event === 'offer').length, reported }
    })
    expect(found.errors).toEqual([])
    expect(found.offers).toBe(1)
    expect(found.reported).toEqual([1, 1])
    for (const flow of found.flows) expectFlow(flow, ['audio', 'video'])
  })
}, 240_000)

test('before anything may be said the offer is made, and the callee has its connection', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, flowing, until } = window.loopback
      const pair = createPair('video')
      let known = () => {}
      const invited = new Promise<void>((resolve) => {
        known = resolve
      })
      Object.assign(pair.callerCall, { invited })
      pair.wire.hold('outgoing')
      await Promise.all([pair.caller.start(), pair.callee.start()])
      await until(() => pair.caller.connection?.iceGatheringState === 'complete')
      const { connection } = pair.callee
      const early = pair.wire.sent.length
      known()
      await until(() => pair.wire.sent.length > 0)
      const first = pair.wire.sent[0]?.signal
      pair.accept()
      pair.wire.release('outgoing')
      await Promise.all([flowing(pair.caller), flowing(pair.callee)])
      const { errors, callee } = pair
      const isSame = connection !== undefined && callee.connection === connection
      const pool = connection?.getConfiguration().iceCandidatePoolSize
      pair.close()
      // The earlier candidates are in it.
      const candidates = first?.event === 'offer' ? first.payload.sdp.split('a=candidate:').length - 1 : 0
      return { early, errors, isSame, pool, hasCandidates: candidates > 0 }
    })
    expect(found).toEqual({ early: 0, errors: [], isSame: true, pool: 0, hasCandidates: true })
  })
}, 240_000)

test('[INV6] a caller whose call becomes the peer’s does not send the offer that it made', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, until } = window.loopback
      const pair = createPair('audio')
      let known = () => {}
      const invited = new Promise<void>((resolve) => {
        known = resolve
      })
      Object.assign(pair.callerCall, { invited })
      await pair.caller.start()
      await until(() => pair.caller.connection?.signalingState === 'have-local-offer')
      Object.assign(pair.callerCall, { direction: 'incoming' })
      known()
      await until(() => pair.caller.connection === undefined)
      // The peer's offer does not come, so it offers itself, on a new connection.
      pair.callerCall.become({ name: 'accepted' })
      const before = pair.wire.sent.length
      await until(() => pair.wire.sent.length > 0)
      const events = pair.wire.sent.map(({ signal }) => signal.event)
      pair.close()
      return { before, first: events[0], errors: pair.errors }
    })
    expect(found).toEqual({ before: 0, first: 'offer', errors: [] })
  })
}, 240_000)

test('candidates that come before their description wait for it', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, flowing } = window.loopback
      const pair = createPair('audio')
      const { wire } = pair
      for (const side of ['outgoing', 'incoming'] as const) wire.hold(side)
      const gathered = (side: 'outgoing' | 'incoming') =>
        wire.sent.filter(({ from, signal }) => from === side && signal.event === 'candidate').length
      const until = async (true_: () => boolean) => {
        while (!true_()) await new Promise((resolve) => setTimeout(resolve, 10))
      }
      await Promise.all([pair.caller.start(), pair.callee.start()])
      pair.accept()
      await until(() => gathered('outgoing') > 0)
      // All candidates first, the last one foremost; then the description.
      wire.release('outgoing', (signals) => signals.toReversed())
      await until(() => gathered('incoming') > 0)
      wire.release('incoming', (signals) => signals.toReversed())
      const order = wire.sent.map(({ signal }) => signal.event)
      const at = performance.now()
      await Promise.all([flowing(pair.caller), flowing(pair.callee)])
      pair.close()
      return { order, errors: pair.errors, ms: performance.now() - at }
    })
    expect(found.errors).toEqual([])
    // By these candidates, not by those of another try.
    expect(found.ms).toBeLessThan(soon(4000))
    expect(found.order[0]).toBe('offer')
  })
}, 240_000)

test('both restart ICE at the same moment: the caller has its way, and media never stops', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, flowing, measureFlow, until } = window.loopback
      const pair = createPair('video')
      const { wire } = pair
      await Promise.all([pair.caller.start(), pair.callee.start()])
      pair.accept()
      await Promise.all([flowing(pair.caller), flowing(pair.callee)])
      await until(() => [pair.caller, pair.callee].every(({ state }) => state.receiving.audio && state.receiving.video))
      const connections = () => [pair.caller.connection, pair.callee.connection]
      const ufrag = () =>
        connections().map((it) => /a=ice-ufrag:(\S+)/.exec(it?.currentLocalDescription?.sdp ?? '')?.[1])
      const before = { ufrag: ufrag(), connections: connections() }
      // Both offers are on their way before either arrives.
      wire.hold('outgoing')
      wire.hold('incoming')
      const flow = Promise.all([measureFlow(pair.caller, 5), measureFlow(pair.callee, 5)])
      const sent = wire.sent.length
      await Promise.all([pair.caller.restart(), pair.callee.restart()])
      wire.release('incoming')
      wire.release('outgoing')
      const flows = await flow
      const events = wire.sent.slice(sent).map(({ from, signal }) => `${from} ${signal.event}`)
      const states = connections().map((it) => `${it?.signalingState} ${it?.connectionState}`)
      const after = { ufrag: ufrag(), same: connections().every((it, i) => it === before.connections[i]) }
      pair.close()
      return { before: before.ufrag, after, flows, events, states, errors: pair.errors }
    })
    expect(found.errors).toEqual([])
    expect(found.events.filter((event) => event.endsWith('answer'))[0]).toBe('incoming answer')
    expect(found.states).toEqual(['stable connected', 'stable connected'])
    expect(found.after.same).toBe(true)
    for (const [i, ufrag] of found.before.entries()) expect(found.after.ufrag[i]).not.toBe(ufrag)
    for (const flow of found.flows) expectFlow(flow, ['audio', 'video'])
  })
}, 240_000)

test('a lost offer, a lost answer: the connection is tried again without being asked', async () => {
  await inPage(async (page) => {
    for (const lost of ['outgoing', 'incoming'] as const) {
      const errors = await page.evaluate(async (lost) => {
        const { createPair, flowing } = window.loopback
        const impatient = { connectTimeoutMs: 300 }
        const pair = createPair('audio', { outgoing: impatient, incoming: impatient })
        pair.wire.lose(lost)
        await Promise.all([pair.caller.start(), pair.callee.start()])
        pair.accept()
        const wasSent = () => pair.wire.sent.some(({ from }) => from === lost)
        while (!wasSent()) await new Promise((resolve) => setTimeout(resolve, 10))
        pair.wire.release(lost)
        await Promise.all([flowing(pair.caller), flowing(pair.callee)])
        pair.close()
        return pair.errors
      }, lost)
      expect(errors).toEqual([])
    }
  })
}, 240_000)

test('a peer without the SDK, which makes a new connection for every offer, is followed', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createStubCalls, createCallMedia, flowing, until } = window.loopback
      const { callAt } = createStubCalls('audio')
      const call = callAt('outgoing')
      // A busy machine may take longer than usual to connect, and that would be another offer.
      const media = createCallMedia(call, { connectTimeoutMs: 60_000 })
      const errors: string[] = []
      media.on('error', ({ message }) => errors.push(message))
      const peer = callAt('incoming')
      const stream = await navigator.mediaDevices.getUserMedia({ audio: true })
      const connections: RTCPeerConnection[] = []
      peer.on('offer', async (sdp) => {
        connections.at(-1)?.close()
        const connection = new RTCPeerConnection()
        connections.push(connection)
        connection.onicecandidate = ({ candidate }) => void peer.sendCandidate(candidate)
        for (const track of stream.getTracks()) connection.addTrack(track, stream)
        await connection.setRemoteDescription(sdp)
        await connection.setLocalDescription()
        const { sdp: text = '' } = connection.localDescription ?? {}
        void peer.sendAnswer({ type: 'answer', sdp: text })
      })
      peer.on('candidate', (candidate) =>
        connections
          .at(-1)
          ?.addIceCandidate(candidate)
          .catch(() => undefined),
      )
      await media.start()
      await flowing(media)
      const first = media.connection
      await media.restart()
      // Its answer comes from another connection than before: ours is replaced, and asks once more.
      await until(() => media.connection !== first && media.state.name === 'flowing')
      const peers = connections.length
      media.close()
      return { peers, errors }
    })
    expect(found).toEqual({ peers: 3, errors: [] })
  })
}, 240_000)

test('who sends video in an audio call offers it after the first answer', async () => {
  await inPage(async (page) => {
    const errors = await page.evaluate(async () => {
      const { createPair, flowing, until } = window.loopback
      const pair = createPair('audio', { incoming: { media: { audio: true, video: true } } })
      // The devices are open before the offer comes.
      await pair.callee.start()
      await pair.caller.start()
      pair.accept()
      await Promise.all([flowing(pair.caller), flowing(pair.callee)])
      await until(() => pair.caller.state.receiving.video)
      pair.close()
      return pair.errors
    })
    expect(errors).toEqual([])
  })
}, 240_000)

test('before a restart ICE servers are made fresh; new ones that are pushed are taken at once', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, flowing, until } = window.loopback
      const pushed: (() => void)[] = []
      const server = (name: string) => [{ urls: [`turn:127.0.0.1:9?transport=udp`], username: name, credential: 'c' }]
      const client = {
        iceServers: server('first'),
        state: { name: 'online' } as never,
        on: (event: string, listener: (payload: never) => void) => {
          if (event === 'iceServers') pushed.push(() => listener([] as never))
          return () => {}
        },
        async freshIceServers() {
          client.iceServers = server('fresh')
          return client.iceServers
        },
      }
      // A busy machine may take longer than usual to connect, and that would be a restart.
      const pair = createPair('audio', { outgoing: { client, connectTimeoutMs: 60_000 } })
      const username = () => pair.caller.connection?.getConfiguration().iceServers?.[0]?.username
      await Promise.all([pair.caller.start(), pair.callee.start()])
      pair.accept()
      await flowing(pair.caller)
      const names = [username()]
      client.iceServers = server('pushed')
      for (const push of pushed) push()
      names.push(username())
      await pair.caller.restart()
      names.push(username())
      await until(() => pair.caller.connection?.signalingState === 'stable')
      pair.close()
      return { names, errors: pair.errors }
    })
    expect(found).toEqual({ names: ['first', 'pushed', 'fresh'], errors: [] })
  })
}, 240_000)

test('signals that are lost with a session while it rings, and in a call: ICE starts anew and the call connects', async () => {
  await inPage(async (page) => {
    const errors = await page.evaluate(async () => {
      const { createPair, flowing, until } = window.loopback
      const pair = createPair('audio')
      const { wire, caller, callee } = pair
      // The offer and its candidates are lost while it rings.
      wire.lose('outgoing')
      await Promise.all([caller.start(), callee.start()])
      await until(() => wire.sent.some(({ signal }) => signal.event === 'candidate'))
      wire.hold('outgoing')
      pair.callerCall.resync(false)
      await until(() => wire.sent.filter(({ signal }) => signal.event === 'offer').length === 2)
      pair.accept()
      wire.release('outgoing')
      await Promise.all([flowing(caller), flowing(callee)])
      // Both get the notice, as after a restart of the service.
      const ufrag = () => /a=ice-ufrag:(\S+)/.exec(caller.connection?.currentLocalDescription?.sdp ?? '')?.[1]
      const [before, connection] = [ufrag(), caller.connection]
      pair.callerCall.resync(false)
      pair.calleeCall.resync(false)
      await until(() => ufrag() !== before && caller.connection?.signalingState === 'stable')
      if (caller.connection !== connection) pair.errors.push('another connection')
      pair.close()
      return pair.errors
    })
    expect(errors).toEqual([])
  })
}, 240_000)

test('a callee that was answered before it listened offers itself, where no offer comes', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, flowing } = window.loopback
      const pair = createPair('audio', { outgoing: { earlyOffer: false } })
      const { sendOffer } = pair.calleeCall
      let offeredAt: number | undefined
      pair.calleeCall.sendOffer = (sdp) => {
        offeredAt ??= performance.now()
        return sendOffer(sdp)
      }
      pair.calleeCall.become({ name: 'accepted' })
      const begun = performance.now()
      await Promise.all([pair.caller.start(), pair.callee.start()])
      const at = performance.now()
      await flowing(pair.callee)
      pair.close()
      const waited = (offeredAt ?? begun) - begun
      return { waited, first: pair.wire.sent[0]?.from, errors: pair.errors, ms: performance.now() - at }
    })
    expect(found).toMatchObject({ first: 'incoming', errors: [] })
    // Its second is counted from the start, and may be over before a slow device is open.
    expect(found.waited).toBeGreaterThan(900)
    expect(found.ms).toBeLessThan(soon(4000))
  })
}, 240_000)

test('a description is sent before its candidates, also where the environment tells of it late', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, flowing, pause } = window.loopback
      class Slow extends RTCPeerConnection {
        override async setLocalDescription(description?: RTCLocalSessionDescriptionInit): Promise<void> {
          await super.setLocalDescription(description)
          for (let i = 0; i < 10; i++) await pause()
        }
      }
      const environment = { RTCPeerConnection: Slow, MediaStream, mediaDevices: navigator.mediaDevices }
      const pair = createPair('audio', { outgoing: { environment }, incoming: { environment } })
      await Promise.all([pair.caller.start(), pair.callee.start()])
      pair.accept()
      await Promise.all([flowing(pair.caller), flowing(pair.callee)])
      const first = (['outgoing', 'incoming'] as const).map(
        (side) => pair.wire.sent.find(({ from }) => from === side)?.signal.event,
      )
      pair.close()
      return { first, errors: pair.errors }
    })
    expect(found).toEqual({ first: ['offer', 'answer'], errors: [] })
  })
}, 240_000)

test('a connection that nothing comes through is not reported as connected', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, flowing, until } = window.loopback
      const silent = { media: {} }
      const pair = createPair('audio', { outgoing: silent, incoming: silent })
      const states = new Set<string>()
      pair.caller.on('state', ({ name }) => states.add(name))
      await Promise.all([pair.caller.start(), pair.callee.start()])
      pair.accept()
      await until(() => pair.caller.connection?.connectionState === 'connected')
      await until(() => pair.caller.state.name === 'silent')
      const silence = { states: [...states], reported: pair.callerCall.reported }
      await pair.callee.switchDevice('audio', {})
      await flowing(pair.caller)
      const heard = { state: pair.caller.state.name, reported: pair.callerCall.reported }
      pair.close()
      return { silence, heard, errors: pair.errors }
    })
    expect(found).toEqual({
      silence: { states: ['connecting', 'silent'], reported: 0 },
      heard: { state: 'flowing', reported: 1 },
      errors: [],
    })
  })
}, 240_000)

test('a restart of ICE names the DTLS role that was settled, so that no answer can turn it round', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, flowing, until } = window.loopback
      const pair = createPair('audio')
      const { caller, callee, wire } = pair
      await Promise.all([caller.start(), callee.start()])
      pair.accept()
      await Promise.all([flowing(caller), flowing(callee)])
      const rolesOf = (event: string) =>
        wire.sent.flatMap(({ from, signal }) => {
          const { payload } = signal
          const sdp = signal.event === event && 'sdp' in payload ? payload.sdp : ''
          return sdp ? [`${from} ${/a=setup:(\w+)/.exec(sdp)?.[1]}`] : []
        })
      for (const [at, media] of [callee, caller].entries()) {
        await media.restart()
        await until(() => rolesOf('answer').length === at + 2)
        await until(() => [caller, callee].every(({ connection }) => connection?.signalingState === 'stable'))
      }
      const result = { offers: rolesOf('offer'), answers: rolesOf('answer'), errors: pair.errors }
      pair.close()
      return result
    })
    expect(found).toEqual({
      offers: ['outgoing actpass', 'incoming active', 'outgoing passive'],
      answers: ['incoming active', 'outgoing passive', 'incoming active'],
      errors: [],
    })
  })
}, 240_000)

test('a camera that opens while a new connection takes the offer of a peer whose page was loaded again is sent on that one', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, flowing, until } = window.loopback
      let opens: (() => Promise<void>) | undefined
      let failure: unknown
      class Connection extends RTCPeerConnection {
        override async setRemoteDescription(description: RTCSessionDescriptionInit): Promise<void> {
          const open = opens
          opens = undefined
          await open?.().catch((error) => {
            failure = String(error)
          })
          await super.setRemoteDescription(description)
        }
      }
      const { MediaStream } = window
      const environment = { RTCPeerConnection: Connection, MediaStream, mediaDevices: navigator.mediaDevices }
      const pair = createPair('audio', { incoming: { environment } })
      await Promise.all([pair.caller.start(), pair.callee.start()])
      pair.accept()
      await Promise.all([flowing(pair.caller), flowing(pair.callee)])
      const { connection } = pair.callee
      opens = () => pair.callee.start({ audio: true, video: true })
      const { media } = pair.reload('outgoing', pair.caller)
      await media.start()
      await until(() => media.state.receiving.video)
      const isNew = pair.callee.connection !== connection
      const { errors } = pair
      pair.close()
      return { failure, errors, isNew }
    })
    expect(found).toEqual({ failure: undefined, errors: [], isNew: true })
  })
}, 240_000)
