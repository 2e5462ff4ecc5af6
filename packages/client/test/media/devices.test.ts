import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import type { MediaStats } from '../../src/media/call-media.ts'
import { withLoopback } from './support/stage.ts'

const inPage = withLoopback()

/** An open call of the type; `pair` in the page. */
async function openCall(page: Page, callType: 'audio' | 'video'): Promise<void> {
  await page.evaluate(async (callType) => {
    const { createPair, flowing } = window.loopback
    const pair = createPair(callType)
    await Promise.all([pair.caller.start(), pair.callee.start()])
    pair.accept()
    await Promise.all([flowing(pair.caller), flowing(pair.callee)])
    Object.assign(window, { pair })
  }, callType)
}

declare global {
  interface Window {
    pair: ReturnType<Window['loopback']['createPair']>
  }
}

test('a muted microphone sends silence, a muted camera sends nothing; both come back', async () => {
  await inPage(async (page) => {
    await openCall(page, 'video')
    const found = await page.evaluate(async () => {
      const { pair, loopback } = window
      const { caller, callee } = pair
      // Chromium decodes only what somebody hears.
      const ear = new Audio()
      ear.srcObject = callee.state.remote
      await ear.play()
      /** What the callee hears and sees in a second. The fake microphone beeps once a second. */
      const second = async () => {
        const before = await loopback.totals(callee)
        await loopback.measureFlow(callee, 2)
        const after = await loopback.totals(callee)
        return {
          energy: after.audioEnergy - before.audioEnergy,
          frames: after.framesDecoded - before.framesDecoded,
          audioPackets: after.audioPackets - before.audioPackets,
          videoPackets: after.videoPackets - before.videoPackets,
        }
      }
      await loopback.until(() => callee.state.receiving.video)
      const open = await second()
      await Promise.all([caller.setMuted('audio', true), caller.setMuted('video', true)])
      // What was on its way arrives; the peer notices by what no longer comes.
      await loopback.until(() => !callee.state.receiving.video)
      await second()
      const muted = await second()
      const state = caller.state.muted
      await Promise.all([caller.setMuted('audio', false), caller.setMuted('video', false)])
      await loopback.until(() => callee.state.receiving.video)
      await second()
      const again = await second()
      pair.close()
      return { open, muted, state, again, errors: pair.errors, offers: pair.wire.sent.length }
    })
    expect(found.errors).toEqual([])
    expect(found.state).toEqual({ audio: true, video: true })
    for (const { energy, frames } of [found.open, found.again]) {
      expect(energy).toBeGreaterThan(0)
      expect(frames).toBeGreaterThan(0)
    }
    expect(found.muted.energy).toBeLessThan(Math.min(found.open.energy, found.again.energy) / 1000)
    expect(found.muted.frames).toBe(0)
    expect(found.muted.videoPackets).toBe(0)
    expect(found.muted.audioPackets).toBeGreaterThan(0)
  })
}, 240_000)

test('a camera that is switched twice in one turn is as it was said last', async () => {
  await inPage(async (page) => {
    await openCall(page, 'video')
    const found = await page.evaluate(async () => {
      const { pair, loopback } = window
      const { caller, callee } = pair
      const twice = async (first: boolean) => {
        await Promise.all([caller.setMuted('video', first), caller.setMuted('video', !first)])
        const transceivers = caller.connection?.getTransceivers() ?? []
        return transceivers.some(({ sender }) => sender.track?.kind === 'video')
      }
      await loopback.until(() => callee.state.receiving.video)
      const offAndOn = await twice(true)
      await caller.setMuted('video', true)
      const onAndOff = await twice(false)
      await caller.setMuted('video', false)
      await loopback.until(() => callee.state.receiving.video)
      pair.close()
      return { offAndOn, onAndOff, errors: pair.errors }
    })
    expect(found).toEqual({ offAndOn: true, onAndOff: false, errors: [] })
  })
}, 240_000)

test('another camera goes out without negotiation; the old one is stopped, the mute stays', async () => {
  await inPage(async (page) => {
    await openCall(page, 'video')
    const found = await page.evaluate(async () => {
      const { pair, loopback } = window
      const { caller, callee } = pair
      await loopback.until(() => callee.state.receiving.video)
      const sent = pair.wire.sent.length
      const [before] = caller.state.local.getVideoTracks()
      const cameras = (await caller.devices()).filter(({ kind }) => kind === 'videoinput')
      await caller.switchDevice('video', cameras.at(-1)?.deviceId ?? '')
      const [after] = caller.state.local.getVideoTracks()
      const { framesDecoded } = await loopback.totals(callee)
      while ((await loopback.totals(callee)).framesDecoded < framesDecoded + 10) await loopback.pause()
      const another = { camera: after !== before, stopped: before?.readyState, live: after?.readyState }
      // A track of the application's own, and a microphone that is muted and stays so.
      await caller.setMuted('audio', true)
      await caller.switchDevice('audio', {})
      const [microphone] = caller.state.local.getAudioTracks()
      const own = loopback.drawnTrack(320, 200)
      await caller.switchDevice('video', own)
      while ((await loopback.totals(callee)).width !== 320) await loopback.pause()
      await caller.switchDevice('video', {})
      const kept = own.readyState
      pair.close()
      own.stop()
      const signals = pair.wire.sent.length - sent
      return { another, microphone: microphone?.enabled, kept, signals, errors: pair.errors }
    })
    expect(found).toEqual({
      another: { camera: true, stopped: 'ended', live: 'live' },
      microphone: false,
      kept: 'live',
      signals: 0,
      errors: [],
    })
  })
}, 240_000)

test('the screen is sent in place of the camera, and stops with it or with the browser’s own bar', async () => {
  await inPage(async (page) => {
    await openCall(page, 'video')
    const found = await page.evaluate(async () => {
      const { pair, loopback } = window
      const { caller, callee } = pair
      const isWide = async (width: (width: number) => boolean) => {
        while (!width((await loopback.totals(callee)).width)) await loopback.pause()
      }
      // A drawn picture stands for the display, so that the test knows what it looks for.
      const screen = loopback.drawnTrack(960, 540)
      await caller.setMuted('video', true)
      await caller.shareScreen(screen)
      const sharing = caller.state.sharing
      await isWide((width) => width === 960 || width === 480 || width === 240)
      await caller.setMuted('video', false)
      await caller.stopScreen()
      await isWide((width) => width === 640 || width === 320)
      const stopped = { sharing: caller.state.sharing, kept: screen.readyState }

      // The real getDisplayMedia; Chromium answers its own picker.
      await caller.shareScreen()
      const [display] = caller.state.local.getVideoTracks()
      const surface = display?.getSettings().displaySurface
      const { framesDecoded } = await loopback.totals(callee)
      while ((await loopback.totals(callee)).framesDecoded <= framesDecoded + 3) await loopback.pause()
      // The user stops it in the browser's bar: the track ends by itself.
      display?.stop()
      display?.dispatchEvent(new Event('ended'))
      await loopback.until(() => !caller.state.sharing)
      await isWide((width) => width === 640 || width === 320)
      pair.close()
      return { sharing, stopped, surface, errors: pair.errors }
    })
    expect(found.errors).toEqual([])
    expect(found.sharing).toBe(true)
    expect(found.stopped).toEqual({ sharing: false, kept: 'live' })
    expect(['monitor', 'window', 'browser']).toContain(found.surface ?? '')
  })
}, 240_000)

test('the sound of a screen is not sent, so it is not recorded; nor is a screen without a picture', async () => {
  await inPage(async (page) => {
    await openCall(page, 'video')
    const found = await page.evaluate(async () => {
      const { pair, loopback } = window
      const { caller } = pair
      const sound = () =>
        new AudioContext().createMediaStreamDestination().stream.getAudioTracks()[0] as MediaStreamTrack
      const share = async (...tracks: MediaStreamTrack[]) => {
        navigator.mediaDevices.getDisplayMedia = async () => new MediaStream(tracks)
        const code = await caller.shareScreen({ audio: true }).then(
          () => 'shared',
          (error) => error.code,
        )
        return [code, ...tracks.map(({ readyState }) => readyState)]
      }
      const screen = loopback.drawnTrack(960, 540)
      const both = await share(screen, sound())
      await caller.stopScreen()
      const alone = await share(sound())
      const state = screen.readyState
      pair.close()
      return { both, stopped: state, alone, errors: pair.errors }
    })
    expect(found).toEqual({
      both: ['shared', 'live', 'ended'],
      stopped: 'ended',
      alone: ['NOT_FOUND', 'ended'],
      errors: [],
    })
  })
}, 240_000)

test('a screen in an audio call is offered to the peer', async () => {
  await inPage(async (page) => {
    await openCall(page, 'audio')
    const errors = await page.evaluate(async () => {
      const { pair, loopback } = window
      await pair.callee.shareScreen(loopback.drawnTrack(640, 360))
      await loopback.until(() => pair.caller.state.receiving.video)
      await pair.callee.stopScreen()
      await loopback.until(() => !pair.caller.state.receiving.video)
      pair.close()
      return pair.errors
    })
    expect(errors).toEqual([])
  })
}, 240_000)

test('a device that ends is replaced by another of its kind; without one the error says so', async () => {
  await inPage(async (page) => {
    await openCall(page, 'audio')
    const found = await page.evaluate(async () => {
      const { pair, loopback } = window
      const { caller } = pair
      const track = () => caller.state.local.getAudioTracks()[0]
      const first = track()
      first?.stop()
      first?.dispatchEvent(new Event('ended'))
      await loopback.until(() => track() !== first && track()?.readyState === 'live')
      const lists: number[] = []
      caller.on('devices', (list) => lists.push(list.length))
      navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('', 'NotFoundError'))
      track()?.dispatchEvent(new Event('ended'))
      navigator.mediaDevices.dispatchEvent(new Event('devicechange'))
      await loopback.until(() => pair.errors.length > 0 && lists.length > 0)
      pair.close()
      return { errors: pair.errors, devices: lists[0] }
    })
    expect(found.errors.join()).toContain('The audio device ended')
    expect(found.devices).toBeGreaterThan(0)
  })
}, 240_000)

test('without a device the start fails with a code, and the peer is heard all the same', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, flowing, measureFlow } = window.loopback
      const refusing = Object.create(navigator.mediaDevices, {
        getUserMedia: { value: () => Promise.reject(new DOMException('no', 'NotAllowedError')) },
        addEventListener: { value: undefined },
        removeEventListener: { value: undefined },
      }) as MediaDevices
      const environment = { RTCPeerConnection, MediaStream, mediaDevices: refusing }
      const pair = createPair('audio', { outgoing: { environment } })
      const failure = await pair.caller.start().then(
        () => undefined,
        (error) => ({ name: error.name, code: error.code, cause: error.cause.name }),
      )
      await pair.callee.start()
      pair.accept()
      await flowing(pair.caller)
      const [window500] = await measureFlow(pair.caller, 1)
      // The user changes their mind: a stream of the application's own.
      await pair.caller.start(await navigator.mediaDevices.getUserMedia({ audio: true }))
      await flowing(pair.callee)
      pair.close()
      const closed = await pair.caller.setMuted('audio', true).catch((error) => error.code)
      return { failure, heard: window500?.audio ?? 0, closed, errors: pair.errors }
    })
    expect(found.failure).toEqual({ name: 'MediaError', code: 'NOT_ALLOWED', cause: 'NotAllowedError' })
    expect(found.heard).toBeGreaterThan(0)
    expect(found.closed).toBe('CLOSED')
    expect(found.errors).toEqual([])
  })
}, 240_000)

test('the end of the call closes the connection and stops what was opened, not what was given', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, flowing } = window.loopback
      const given = await navigator.mediaDevices.getUserMedia({ audio: true })
      const pair = createPair('audio', { incoming: { media: given } })
      await Promise.all([pair.caller.start(), pair.callee.start()])
      pair.accept()
      await Promise.all([flowing(pair.caller), flowing(pair.callee)])
      const opened = pair.caller.state.local.getTracks()
      const connections = [pair.caller.connection, pair.callee.connection]
      await pair.callerCall.end()
      await pair.calleeCall.end()
      const states = [pair.caller.state.name, pair.callee.state.name]
      const devices = [...opened, ...given.getTracks()].map(({ readyState }) => readyState)
      for (const track of given.getTracks()) track.stop()
      return { states, devices, connections: connections.map((it) => it?.connectionState), errors: pair.errors }
    })
    expect(found).toEqual({
      states: ['closed', 'closed'],
      devices: ['ended', 'live'],
      connections: ['closed', 'closed'],
      errors: [],
    })
  })
}, 240_000)

test('a call that is over opens no device', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const pair = window.loopback.createPair('audio')
      let opened = 0
      navigator.mediaDevices.getUserMedia = () => {
        opened++
        return Promise.reject(new DOMException('', 'NotFoundError'))
      }
      await pair.callerCall.end()
      const code = await pair.caller.start().catch((error) => error.code)
      return { code, opened, state: pair.caller.state.name }
    })
    expect(found).toEqual({ code: 'CLOSED', opened: 0, state: 'closed' })
  })
}, 240_000)

test('media that flows is reported until the service has it', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, flowing } = window.loopback
      const quick = { statsIntervalMs: 100 }
      const pair = createPair('audio', { outgoing: quick, incoming: quick })
      const fails = (...codes: string[]) => {
        const told: string[] = []
        return async () => {
          const code = codes[told.length]
          told.push(code ?? 'ok')
          const retryable = code === 'SERVICE_UNAVAILABLE'
          if (code !== undefined) throw Object.assign(new Error(code), { code, retryable })
          done.push(told)
        }
      }
      const done: string[][] = []
      let refused = 0
      pair.callerCall.connected = fails('TIMEOUT', 'CONNECTION_CLOSED', 'SERVICE_UNAVAILABLE')
      pair.calleeCall.connected = async () => {
        refused++
        throw Object.assign(new Error('no'), { code: 'ACTION_NOT_ALLOWED', retryable: false })
      }
      await Promise.all([pair.caller.start(), pair.callee.start()])
      pair.accept()
      await Promise.all([flowing(pair.caller), flowing(pair.callee)])
      await window.loopback.until(() => done.length > 0)
      // Known words are not repeated, and forbidden ones are never sent.
      await new Promise<void>((resolve) => {
        let looks = 0
        pair.caller.on('stats', () => ++looks === 10 && resolve())
      })
      pair.close()
      return { done, refused, errors: pair.errors.length }
    })
    expect(found.done).toEqual([['TIMEOUT', 'CONNECTION_CLOSED', 'SERVICE_UNAVAILABLE', 'ok']])
    expect(found).toMatchObject({ refused: 1, errors: 1 })
  })
}, 240_000)

test('statistics come at the interval that was asked for', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createPair, flowing } = window.loopback
      const pair = createPair('video', { outgoing: { statsIntervalMs: 250 } })
      await Promise.all([pair.caller.start(), pair.callee.start()])
      pair.accept()
      await flowing(pair.caller)
      const seen = await new Promise<MediaStats[]>((resolve) => {
        const all: MediaStats[] = []
        pair.caller.on('stats', (stats) => {
          all.push(stats)
          // In 250 ms a busy machine may send no picture at all.
          const flows = stats.inbound.audio.packets > 0 && stats.outbound.video.packets > 0
          if (all.length >= 8 && flows) resolve(all.slice())
        })
      })
      pair.close()
      return seen
    })
    const last = found.at(-1)
    expect(last?.intervalMs).toBeGreaterThanOrEqual(200)
    expect(last?.path).toBe('direct')
    expect(last?.roundTripMs).toBeGreaterThanOrEqual(0)
    expect(last?.inbound.audio.loss).toBe(0)
    expect(last?.inbound.audio.bitsPerSecond).toBeGreaterThan(1000)
    expect(last?.outbound.video.bitsPerSecond).toBeGreaterThan(1000)
    expect(last?.picture?.width).toBeGreaterThan(0)
  })
}, 240_000)
