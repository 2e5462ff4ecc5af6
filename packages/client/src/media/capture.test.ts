import { expect, jest, test } from 'bun:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createCapture } from './capture.ts'
import type { CaptureOptions } from './sources.ts'
import type { MediaEnvironment, MediaErrorCode, MediaKind } from './types.ts'

/** Each attempt to open devices, by the kinds asked for; the test says how it ends. */
interface Attempt {
  readonly wish: MediaStreamConstraints
  fails(name: string): void
  /** The devices that are open now. */
  opens(...kinds: ('audio' | 'video')[]): FakeTrack[]
}

type FakeTrack = Omit<MediaStreamTrack, 'readyState'> & { readyState: 'live' | 'ended' }

function track(kind: string): FakeTrack {
  const made = Object.assign(new EventTarget(), {
    ...{ kind, enabled: true, contentHint: '', readyState: 'live' },
    stop() {
      made.readyState = 'ended'
    },
  })
  return made as never
}

/** Unplugged, or ended by its maker. */
function end(device: FakeTrack): void {
  device.readyState = 'ended'
  device.dispatchEvent(new Event('ended'))
}

const streamOf = (...tracks: FakeTrack[]) => ({ getTracks: () => tracks, getVideoTracks: () => tracks }) as never

/** A machine whose prompts the test answers. */
function machine({ process, muted = { audio: false, video: false }, ...more }: Partial<CaptureOptions> = {}) {
  const sent: Partial<Record<MediaKind, unknown>> = {}
  const told: string[] = []
  const pickers: { picks(): FakeTrack }[] = []
  const attempts: Attempt[] = []
  let changed = Promise.withResolvers<void>()
  const getUserMedia = (wish: MediaStreamConstraints) => {
    const { promise, resolve, reject } = Promise.withResolvers<MediaStream>()
    attempts.push({
      wish,
      fails: (name) => reject(Object.assign(new Error(name), { name })),
      opens(...kinds) {
        const tracks = kinds.map(track)
        resolve(streamOf(...tracks))
        return tracks
      },
    })
    changed.resolve()
    changed = Promise.withResolvers()
    return promise
  }
  const query = async ({ name }: { name: string }) => ({ state: name === 'microphone' ? 'granted' : 'prompt' })
  const getDisplayMedia = () => {
    const { promise, resolve } = Promise.withResolvers<MediaStream>()
    pickers.push({
      picks() {
        const screen = track('video')
        resolve(streamOf(screen))
        return screen
      },
    })
    return promise
  }
  const mediaDevices = { getUserMedia, getDisplayMedia }
  const environment = { mediaDevices, permissions: { query } } as unknown as MediaEnvironment
  const capture = createCapture({
    ...{ environment, muted, process, updated() {}, ...more },
    async changed(kind, now) {
      sent[kind] = now
    },
    failed: ({ message }) => void told.push(message),
  })
  return {
    ...{ capture, attempts, sent, told, pickers },
    /** With an open camera. */
    async withCamera(): Promise<FakeTrack> {
      const opened = capture.open({ video: true })
      const [camera] = attempts.at(-1)!.opens('video') as [FakeTrack]
      await opened
      return camera
    },
    async attempt(nth: number): Promise<Attempt> {
      while (attempts.length < nth) await changed.promise
      return attempts[nth - 1] as Attempt
    },
  }
}

async function withoutBoth() {
  const it = machine()
  const video = { facingMode: 'user' }
  const opened = it.capture.open({ audio: true, video }).catch(({ code }) => code as MediaErrorCode)
  for (let nth = 1; nth <= 3; nth++) (await it.attempt(nth)).fails('NotReadableError')
  expect(await opened).toBe('IN_USE')
  expect(it.capture.state().errors).toEqual({ audio: 'IN_USE', video: 'IN_USE' })
  return it
}

test('who asks for all while one kind is asked for gets the answer to all, after that one', async () => {
  const it = await withoutBoth()
  const mended = it.capture.mend()
  const ofMicrophone = await it.attempt(4)
  expect(ofMicrophone.wish).toEqual({ audio: true })
  let answer: MediaErrorCode | 'open' | undefined
  const asked = it.capture.retry().then(
    () => {
      answer = 'open'
    },
    ({ code }) => {
      answer = code
    },
  )
  ofMicrophone.opens('audio')
  await mended
  expect([it.capture.state().errors, answer]).toEqual([{ video: 'IN_USE' }, undefined])
  const ofCamera = await it.attempt(5)
  expect(ofCamera.wish).toEqual({ video: { facingMode: 'user' } })
  ofCamera.opens('video')
  await asked
  expect([it.capture.state().errors, answer]).toEqual([{}, 'open'])
})

test('what is asked for already is not asked for twice', async () => {
  const it = await withoutBoth()
  const both = [it.capture.retry(), it.capture.retry()]
  const mended = it.capture.mend()
  ;(await it.attempt(4)).fails('NotAllowedError')
  // The microphone is allowed, and the camera's prompt was refused: it is not shown a second time.
  ;(await it.attempt(5)).opens('audio')
  await mended
  const answers = await Promise.all(both.map((promise) => promise.catch(({ code }) => code)))
  expect(answers).toEqual(['NOT_ALLOWED', 'NOT_ALLOWED'])
  expect(it.attempts.map(({ wish }) => Object.keys(wish).length).slice(3)).toEqual([2, 1])
})

test('a camera that ends while another is chosen does not win over it', async () => {
  const it = machine()
  const first = await it.withCamera()
  const chosen = it.capture.switchDevice('video', 'second')
  end(first)
  await turn()
  expect([it.attempts.length, it.sent.video]).toEqual([2, null])
  const [second] = it.attempts[1]!.opens('video') as [FakeTrack]
  await chosen
  expect([it.attempts.length, it.sent.video === second, it.told]).toEqual([2, true, []])
})

test('where the chosen camera fails, any other replaces the one that ended', async () => {
  const it = machine()
  const first = await it.withCamera()
  void it.capture.switchDevice('video', 'second').catch(() => {})
  end(first)
  it.attempts[1]!.fails('NotFoundError')
  const [other] = (await it.attempt(3)).opens('video') as [FakeTrack]
  await turn()
  expect(it.attempts[2]?.wish).toEqual({ video: { deviceId: undefined } } as never)
  expect([it.sent.video === other, it.capture.state().errors]).toEqual([true, {}])
})

test('no device stays open for a process that never answers', async () => {
  const it = machine({ process: () => new Promise(() => {}) })
  const cameras: FakeTrack[] = []
  const open = async (asked: Promise<void>) => {
    asked.catch(() => {})
    cameras.push(...(it.attempts.at(-1)!.opens('video') as FakeTrack[]))
    await turn()
  }
  await open(it.capture.open({ video: true }))
  await it.capture.setMuted('video', true)
  expect(cameras.map(({ readyState }) => readyState)).toEqual(['ended'])
  await open(it.capture.setMuted('video', false))
  await open(it.capture.switchDevice('video', 'second'))
  expect(cameras.map(({ readyState }) => readyState)).toEqual(['ended', 'ended', 'live'])
  it.capture.close()
  expect(cameras[2]?.readyState).toBe('ended')
})

test('a process that never answers: another device, or none, ends its turn at once', async () => {
  const it = machine({ process: () => new Promise(() => {}) })
  const opened = it.capture.open({ video: true })
  it.attempts[0]!.opens('video')
  await turn()
  expect(it.capture.state().slots.video).toEqual({ name: 'opening' })
  const second = it.capture.switchDevice('video', 'second')
  await opened
  it.attempts[1]!.opens('video')
  await turn()
  const off = it.capture.setMuted('video', true)
  expect(it.capture.state().slots.video).toEqual({ name: 'empty' })
  await Promise.all([second, off])
})

test('a process that never answers is given up after 15 s, and what it makes later is stopped', async () => {
  const late = Promise.withResolvers<MediaStreamTrack>()
  const it = machine({ process: () => late.promise })
  jest.useFakeTimers()
  try {
    const opened = it.capture.open({ audio: true }).catch(({ code }) => code)
    const [microphone] = it.attempts[0]!.opens('audio') as [FakeTrack]
    for (let turns = 0; turns < 100 && jest.getTimerCount() === 0; turns++) await Promise.resolve()
    jest.advanceTimersByTime(14_999)
    expect(it.capture.state().slots.audio).toEqual({ name: 'opening' })
    jest.advanceTimersByTime(1)
    expect(await opened).toBe('PROCESS_TIMEOUT')
    expect(it.capture.state().slots.audio).toEqual({ name: 'lost', code: 'PROCESS_TIMEOUT' })
    expect([it.sent.audio, microphone.readyState]).toEqual([null, 'ended'])
    // It is opened again like any other that is lost.
    void it.capture.retry().catch(() => {})
    expect(it.attempts).toHaveLength(2)
  } finally {
    jest.useRealTimers()
  }
  const made = track('audio')
  late.resolve(made as never)
  await turn()
  expect(made.readyState).toBe('ended')
})

test('a device that ends while it is processed is replaced', async () => {
  const processed = Promise.withResolvers<void>()
  const it = machine({ process: (source) => processed.promise.then(() => source) })
  const opened = it.capture.open({ video: true })
  const [first] = it.attempts[0]!.opens('video') as [FakeTrack]
  await turn()
  end(first)
  processed.resolve()
  const [second] = (await it.attempt(2)).opens('video') as [FakeTrack]
  await opened
  expect(it.sent.video).toBe(second)
})

test('a camera that made way for one that is in use is not sent any more, whatever is chosen then', async () => {
  const it = machine()
  const first = await it.withCamera()
  const second = it.capture.switchDevice('video', 'second')
  it.attempts[1]!.fails('NotReadableError')
  await it.attempt(3)
  expect(first.readyState).toBe('ended')
  const third = it.capture.switchDevice('video', 'third').catch(({ code }) => code)
  it.attempts[3]!.fails('NotFoundError')
  expect(await third).toBe('NOT_FOUND')
  expect(it.capture.state().slots.video).toEqual({ name: 'lost', code: 'NOT_FOUND' })
  expect([it.sent.video, it.capture.device('video')]).toEqual([null, null])
  it.attempts[2]!.fails('NotReadableError')
  await second
  // The first one is not opened again for a wish that is gone.
  expect(it.attempts).toHaveLength(4)
})

test('a camera that is chosen while the camera is off replaces a track of the application', async () => {
  const it = machine()
  await it.capture.open(streamOf(track('video')))
  await it.capture.setMuted('video', true)
  await it.capture.switchDevice('video', 'chosen')
  const on = it.capture.setMuted('video', false)
  expect(it.attempts.map(({ wish }) => wish)).toEqual([{ video: { deviceId: { exact: 'chosen' } } }] as never)
  const [chosen] = it.attempts[0]!.opens('video') as [FakeTrack]
  await on
  expect(it.sent.video).toBe(chosen)
})

test('unmuting enables a track only where that was given disabled', async () => {
  const it = machine()
  const [asleep, held] = [track('audio'), track('audio')]
  asleep.enabled = false
  await it.capture.open(streamOf(asleep))
  expect(it.capture.state().muted.audio).toBe(true)
  await it.capture.setMuted('audio', false)
  expect(asleep.enabled).toBe(true)
  await it.capture.switchDevice('audio', held as never)
  for (const given of [held, asleep]) {
    await it.capture.switchDevice('audio', given as never)
    // Push to talk: the application does it by itself.
    given.enabled = false
    await it.capture.setMuted('audio', true)
    await it.capture.setMuted('audio', false)
    expect(given.enabled).toBe(false)
  }
})

test('a track that had ended when it was given is lost', async () => {
  const it = machine()
  const [camera, screen] = [track('video'), track('video')]
  for (const ended of [camera, screen]) ended.stop()
  await it.capture.open(streamOf(camera))
  await it.capture.shareScreen(screen as never)
  const { slots, sharing } = it.capture.state()
  expect([slots.video, sharing, it.sent.video]).toEqual([{ name: 'lost', code: 'DEVICE_LOST' }, false, null])
  expect(it.told).toEqual(['The video track that was given ended'])
})

test('after the end no further device is asked for, and nothing is there', async () => {
  const it = machine()
  const opened = it.capture.open({ audio: true, video: true }).catch(({ code }) => code)
  it.attempts[0]!.fails('NotReadableError')
  const ofMicrophone = await it.attempt(2)
  it.capture.close()
  const [microphone] = ofMicrophone.opens('audio') as [FakeTrack]
  expect(await opened).toBe('CLOSED')
  expect([it.attempts.length, microphone.readyState]).toEqual([2, 'ended'])
  const empty = { name: 'empty' } as const
  expect(it.capture.state().slots).toEqual({ audio: empty, video: empty, screen: empty })
})

test('a screen is asked for once, however often the button is pressed; whoever wants none any more gets none', async () => {
  const it = machine()
  const shared = [it.capture.shareScreen({}), it.capture.stopScreen(), it.capture.shareScreen({})]
  const screen = it.pickers[0]!.picks()
  await Promise.all(shared)
  expect([it.pickers.length, screen?.readyState, it.sent.video === screen]).toEqual([1, 'live', true])
  await it.capture.stopScreen()
  const asked = [it.capture.shareScreen({}), it.capture.shareScreen({}), it.capture.stopScreen()]
  const unwanted = it.pickers[1]!.picks()
  await Promise.all(asked)
  const closing = it.capture.shareScreen({}).catch(({ code }) => code)
  it.capture.close()
  const late = it.pickers[2]!.picks()
  expect([await closing, unwanted?.readyState, late?.readyState]).toEqual(['CLOSED', 'ended', 'ended'])
})

test('[HOLD1] a call on hold sends music or nothing, whatever is opened, muted or shared; nothing is closed', async () => {
  const music = track('audio')
  let isHeld = false
  const it = machine({ held: () => isHeld, holdMusic: music })
  const opened = it.capture.open({ audio: true, video: true })
  const [microphone, camera] = it.attempts.at(-1)!.opens('audio', 'video') as [FakeTrack, FakeTrack]
  await opened
  isHeld = true
  await it.capture.refresh()
  expect([it.sent.audio === music, it.sent.video, it.capture.state().held]).toEqual([true, null, true])
  for (const mute of [true, false]) await it.capture.setMuted('audio', mute)
  await it.capture.shareScreen(track('video'))
  const switched = it.capture.switchDevice('video', 'second')
  const [second] = it.attempts.at(-1)!.opens('video') as [FakeTrack]
  await switched
  expect([it.sent.audio === music, it.sent.video, music.enabled]).toEqual([true, null, true])
  await it.capture.stopScreen()
  isHeld = false
  await it.capture.refresh()
  expect([it.sent.audio === microphone, it.sent.video === second, it.capture.state().held]).toEqual([true, true, false])
  const ends: string[] = [microphone, camera, second, music].map(({ readyState }) => readyState)
  expect(ends).toEqual(['live', 'ended', 'live', 'live'])
})
