import { expect, test } from 'bun:test'
import { withLoopback } from './support/stage.ts'

/* One call has one media part, which takes what it needs from the call. */

const inPage = withLoopback()

test('a second media part of a call is the first one; other options are refused until that is closed', async () => {
  await inPage(async (page) => {
    const found = await page.evaluate(async () => {
      const { createStubCalls, createCallMedia, until } = window.loopback
      let made = 0
      const { RTCPeerConnection } = window
      window.RTCPeerConnection = class extends RTCPeerConnection {
        constructor(configuration?: RTCConfiguration) {
          super(configuration)
          made++
        }
      }
      const call = createStubCalls('audio').callAt('outgoing')
      const first = createCallMedia(call)
      await Promise.all([first.start(), createCallMedia(call).start()])
      await until(() => made > 0)
      const isSame = createCallMedia(call, {}) === first
      const failure = (() => {
        try {
          createCallMedia(call, { earlyOffer: false })
        } catch (error) {
          return (error as { code?: string }).code
        }
        return undefined
      })()
      const live = first.state.local.getTracks().length
      first.close()
      const second = createCallMedia(call, { earlyOffer: false })
      const isAnother = second !== first
      second.close()
      return { isSame, failure, isAnother, made, live }
    })
    expect(found).toEqual({ isSame: true, failure: 'ALREADY_EXISTS', isAnother: true, made: 1, live: 1 })
  })
}, 240_000)

test('a call that something else negotiates gets no media part', async () => {
  await inPage(async (page) => {
    const failure = await page.evaluate(async () => {
      const call = window.loopback.createStubCalls('audio').callAt('outgoing')
      const claimed = Object.assign(call, {
        claimSignals: () => {
          throw Object.assign(new Error(), { code: 'SIGNALS_CLAIMED' })
        },
      })
      try {
        window.loopback.createCallMedia(claimed)
      } catch (error) {
        return (error as { code?: string }).code
      }
      return undefined
    })
    expect(failure).toBe('SIGNALS_CLAIMED')
  })
}, 240_000)

test('the ICE servers are those of the call’s client, and those of the configuration', async () => {
  await inPage(async (page) => {
    const urls = await page.evaluate(async () => {
      const { createStubCalls, createCallMedia, until } = window.loopback
      const client = {
        ...{ iceServers: [{ urls: ['stun:127.0.0.1:1'] }], freshIceServers: async () => [], on: () => () => {} },
        ...{ state: { name: 'online' }, iceTransportPolicy: 'relay' },
      }
      const call = Object.assign(createStubCalls('audio').callAt('outgoing'), { client: client as never })
      const media = createCallMedia(call, { media: {}, configuration: { iceServers: [{ urls: 'stun:127.0.0.1:2' }] } })
      await media.start()
      await until(() => media.connection !== undefined)
      const { iceServers, iceTransportPolicy } = media.connection?.getConfiguration() ?? {}
      media.close()
      return [...(iceServers ?? []).flatMap(({ urls }) => urls), iceTransportPolicy]
    })
    expect(urls).toEqual(['stun:127.0.0.1:1', 'stun:127.0.0.1:2', 'relay'])
  })
}, 240_000)
