import { expect, test } from 'bun:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createPlaybacks } from './playback.ts'

/** An element of a page that may play nothing before a click, and to which nothing has come yet. */
function silentElement() {
  const page = new EventTarget()
  let isAllowed = false
  page.addEventListener('click', () => (isAllowed = true), { capture: true })
  return Object.assign(new EventTarget(), {
    ownerDocument: page,
    srcObject: null,
    paused: true,
    play(): Promise<void> {
      if (!isAllowed) return Promise.reject(Object.assign(new Error(), { name: 'NotAllowedError' }))
      this.paused = false
      return new Promise(() => {})
    },
  })
}

test('an element that may play is no longer blocked, also while there is nothing to play', async () => {
  const element = silentElement()
  const { promise: isPlaying, resolve } = Promise.withResolvers<void>()
  const playbacks = createPlaybacks({} as MediaStream, {
    failed: resolve,
    updated: () => playbacks.state() === 'playing' && resolve(),
  })
  const playback = playbacks.attach(element as never)
  await turn()
  expect(playback.state).toBe('blocked')
  element.ownerDocument.dispatchEvent(new Event('click'))
  await isPlaying
  expect(playback.state).toBe('playing')
})
