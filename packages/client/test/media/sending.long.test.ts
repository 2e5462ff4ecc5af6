import { expect, test } from 'bun:test'
import { withLoopback } from './support/stage.ts'

/* What is sent of a track, how, and what a preview hands over. */

const inPage = withLoopback()

test('a camera is sent as motion, a screen as detail; each with its bound, once pictures have left, also after a new negotiation', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, flowing, until, drawnTrack } = window.loopback
      /** How many pictures had left each time that an encoder was set up anew: before the first one that would delay it. */
      const left: number[] = []
      const { setParameters } = RTCRtpSender.prototype
      RTCRtpSender.prototype.setParameters = async function (...given) {
        const [report] = await Promise.all([this.getStats(), setParameters.apply(this, given)])
        const pictures = [...report.values()].find(({ type }) => type === 'outbound-rtp')
        left.push(pictures?.framesSent ?? 0)
      }
      const pair = createPair('video')
      const { caller, callee } = pair
      await Promise.all([caller.start(), callee.start()])
      pair.accept()
      await Promise.all([flowing(caller), flowing(callee)])
      const sent = async (media: typeof caller, maxBitrate: number) => {
        const video = () => media.connection?.getSenders().find(({ track }) => track?.kind === 'video')
        await until(() => video()?.getParameters().encodings[0]?.maxBitrate === maxBitrate)
        const parameters: { degradationPreference?: string } = video()?.getParameters() ?? {}
        return { hint: video()?.track?.contentHint, degradationPreference: parameters.degradationPreference }
      }
      const cameras = [await sent(caller, 1_700_000), await sent(callee, 1_700_000)]
      await caller.shareScreen(drawnTrack(640, 360))
      const screen = await sent(caller, 2_500_000)
      const before = caller.connection
      const { call, media } = pair.reload('incoming', callee)
      void media.start()
      call.resync(true)
      await flowing(media)
      await until(() => caller.connection !== before && caller.connection?.connectionState === 'connected')
      const again = await sent(caller, 2_500_000)
      await caller.stopScreen()
      const back = await sent(caller, 1_700_000)
      // What the application has said of its own track stays.
      const own = drawnTrack(320, 200)
      own.contentHint = 'text'
      await caller.switchDevice('video', own)
      const text = await sent(caller, 2_500_000)
      pair.close()
      own.stop()
      return { cameras, screen, again, back, text, left, errors: pair.errors }
    })
    const camera = { hint: 'motion', degradationPreference: 'maintain-framerate' }
    const screen = { hint: 'detail', degradationPreference: 'maintain-resolution' }
    const { left, ...rest } = found
    expect(left.length).toBeGreaterThanOrEqual(2)
    expect(Math.min(...left)).toBeGreaterThan(0)
    expect(rest).toEqual({
      // A track that was given gets no hint, and is sent as the screen that it stands for.
      ...{ cameras: [camera, camera], screen: { ...screen, hint: '' }, again: { ...screen, hint: '' }, back: camera },
      ...{ text: { ...screen, hint: 'text' }, errors: [] },
    })
  })
}, 240_000)

test('what the application makes of a camera is sent in its place; where that fails nothing is', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, flowing, until, totals, pause, drawnTrack } = window.loopback
      const opened: MediaStreamTrack[] = []
      const made: MediaStreamTrack[] = []
      let fails = false
      const process = async (track: MediaStreamTrack) => {
        if (track.kind === 'audio') return track
        opened.push(track)
        if (fails) throw new TypeError('the model could not be loaded')
        const blurred = drawnTrack(240, 180)
        made.push(blurred)
        return blurred
      }
      const pair = createPair('video', { outgoing: { process } })
      const { caller, callee } = pair
      await Promise.all([caller.start(), callee.start()])
      pair.accept()
      await Promise.all([flowing(caller), flowing(callee)])
      while ((await totals(callee)).width !== 240) await pause()
      await caller.setMuted('video', true)
      const off = [...opened, ...made].map(({ readyState }) => readyState)
      await caller.setMuted('video', false)
      // Another camera: the track of the previous one is stopped with it.
      await caller.switchDevice('video', {})
      const states = [...opened, ...made].map(({ readyState }) => readyState)
      fails = true
      const code = await caller.switchDevice('video', {}).catch((error) => error.code)
      const kept = caller.state.errors.video
      const last = opened.at(-1)?.readyState
      await pair.callerCall.end()
      const after = [...opened, ...made].map(({ readyState }) => readyState)

      const other = createPair('video', { outgoing: { process } })
      const start = await other.caller.start().catch((error) => error.code)
      await other.callee.start()
      other.accept()
      await flowing(other.callee)
      await until(() => other.callee.state.receiving.audio)
      const without = { start, errors: other.caller.state.errors, video: other.callee.state.receiving.video }
      for (const it of [pair, other]) it.close()
      return { off, states, code, kept, last, after, without, errors: [...pair.errors, ...other.errors] }
    })
    expect(found).toEqual({
      off: ['ended', 'ended'],
      // In the order in which they came: the cameras, then what was made of them.
      states: ['ended', 'ended', 'live', 'ended', 'ended', 'live'],
      ...{ code: 'FAILED', kept: undefined, last: 'ended' },
      after: ['ended', 'ended', 'ended', 'ended', 'ended', 'ended', 'ended'],
      without: { start: 'FAILED', errors: { video: 'FAILED' }, video: false },
      errors: [],
    })
  })
}, 240_000)

test('the sound comes out where it is wanted; a browser without the choice says so', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair } = window.loopback
      const pair = createPair('audio')
      await pair.caller.start()
      const outputs = (await pair.caller.devices()).filter(({ kind }) => kind === 'audiooutput')
      const element = new Audio()
      const wanted = outputs.at(-1)?.deviceId ?? ''
      await pair.caller.setOutput(element, wanted)
      const unknown = await pair.caller.setOutput(element, 'nowhere').catch(({ code }) => code)
      Object.assign(element, { setSinkId: undefined })
      const none = await pair.caller.setOutput(element, wanted).catch(({ code }) => code)
      pair.close()
      return { isSet: wanted !== '' && element.sinkId === wanted, unknown, none }
    })
    expect(found).toEqual({ isSet: true, unknown: 'NOT_FOUND', none: 'NOT_SUPPORTED' })
  })
}, 240_000)

test('a preview shows and measures the devices, and a call goes on with them as they are', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPreview, createPair, flowing, until, measureFlow } = window.loopback
      const preview = createPreview()
      let loudest = 0
      preview.on('state', ({ audioLevel }) => {
        loudest = Math.max(loudest, audioLevel)
      })
      const { stream } = preview.state
      const before = stream.getTracks().length
      await preview.start()
      const devices = [...new Set(preview.state.devices.filter(({ label }) => label).map(({ kind }) => kind))].sort()
      // The fake microphone beeps once a second.
      await until(() => loudest > 0.05)
      const [first] = stream.getAudioTracks()
      const other = preview.state.devices.findLast(({ kind }) => kind === 'audioinput')?.deviceId ?? ''
      await preview.switchDevice('audio', other)
      const [second] = stream.getAudioTracks()
      const switched = [first?.readyState, second?.getSettings().deviceId === other, stream.getTracks().length]
      const missing = await preview.switchDevice('video', 'nowhere').catch(({ code }) => code)
      const [camera] = stream.getVideoTracks()
      await preview.setEnabled('video', false)
      // Its light is out.
      const off = [camera?.readyState, stream.getTracks().length, preview.state.enabled.video]
      await preview.setEnabled('video', true)
      await preview.setEnabled('audio', false)
      const shown = { enabled: preview.state.enabled, errors: preview.state.errors, tracks: stream.getTracks().length }

      const pair = createPair('video', { outgoing: { media: stream } })
      const { caller, callee } = pair
      await Promise.all([caller.start(), callee.start()])
      pair.accept()
      await Promise.all([flowing(caller), flowing(callee)])
      await measureFlow(callee, 1)
      const call = { muted: caller.state.muted, receiving: callee.state.receiving }
      await caller.setMuted('audio', false)
      await until(() => callee.state.receiving.audio)
      pair.close()
      const kept = stream.getTracks().map(({ readyState }) => readyState)
      const tracks = stream.getTracks()
      preview.close()
      const stopped = tracks.map(({ readyState }) => readyState)
      return { before, devices, switched, missing, off, shown, call, kept, stopped, errors: pair.errors }
    })
    expect(found).toEqual({
      ...{ before: 0, devices: ['audioinput', 'audiooutput', 'videoinput'], switched: ['ended', true, 2] },
      ...{ missing: 'NOT_FOUND', off: ['ended', 1, false] },
      shown: { enabled: { audio: false, video: true }, errors: {}, tracks: 2 },
      call: { muted: { audio: true, video: false }, receiving: { audio: false, video: true } },
      ...{ kept: ['live', 'live'], stopped: ['ended', 'ended'], errors: [] },
    })
  })
}, 240_000)
