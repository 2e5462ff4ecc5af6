import { expect, test } from 'bun:test'
import { createCapture } from './capture.ts'
import type { MediaEnvironment, MediaErrorCode } from './types.ts'

/** Each attempt to open devices, by the kinds asked for; the test says how it ends. */
interface Attempt {
  readonly wish: MediaStreamConstraints
  fails(name: string): void
  opens(...kinds: ('audio' | 'video')[]): void
}

function track(kind: string): MediaStreamTrack {
  return Object.assign(new EventTarget(), {
    kind,
    enabled: true,
    readyState: 'live',
    contentHint: '',
    stop() {},
  }) as never
}

/** A machine whose prompts the test answers. */
function machine() {
  const attempts: Attempt[] = []
  let changed = Promise.withResolvers<void>()
  const getUserMedia = (wish: MediaStreamConstraints) => {
    const { promise, resolve, reject } = Promise.withResolvers<MediaStream>()
    attempts.push({
      wish,
      fails: (name) => reject(Object.assign(new Error(name), { name })),
      opens: (...kinds) => resolve({ getTracks: () => kinds.map(track) } as never),
    })
    changed.resolve()
    changed = Promise.withResolvers()
    return promise
  }
  const query = async ({ name }: { name: string }) => ({ state: name === 'microphone' ? 'granted' : 'prompt' })
  const environment = { mediaDevices: { getUserMedia }, permissions: { query } } as unknown as MediaEnvironment
  const capture = createCapture({
    ...{ environment, muted: { audio: false, video: false }, process: undefined },
    ...{ changed: async () => {}, updated() {}, failed() {} },
  })
  return {
    capture,
    attempts,
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
