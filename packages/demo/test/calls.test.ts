import { expect, test } from 'bun:test'
import { isLong } from '@ringwire/testkit/long'
import type { Page } from 'playwright-core'
import { expectFlow, measureFlow } from './support/flow.ts'
import { connect, goOnlineTogether, type Participant } from './support/participant.ts'
import { withServiceAndBrowser } from './support/stage.ts'

const stage = withServiceAndBrowser()
const together = () => goOnlineTogether(stage.browser, stage.service.url)

/** The newest line of the history list, once it says so. */
async function newestRecord({ page }: Participant, kind: string, status: string): Promise<void> {
  await page.waitForSelector(`[data-testid=record]:first-child[data-kind=${kind}][data-status=${status}]`)
}

async function bothIdle(...people: Participant[]): Promise<void> {
  await Promise.all(people.map((person) => person.phase('idle')))
}

test('[END2] reject: the caller reads it and both histories say so', async () => {
  const { customer, agent, close } = await together()
  await customer.call(agent, 'audio')
  await agent.incoming()
  await agent.click('reject')
  await customer.note('declined')
  await bothIdle(customer, agent)
  await newestRecord(customer, 'outgoing', 'rejected')
  await newestRecord(agent, 'incoming', 'rejected')
  await close()
}, 240_000)

test('[END2] cancel: the callee stops ringing and finds a missed call', async () => {
  const { customer, agent, close } = await together()
  await agent.call(customer, 'video')
  await customer.incoming()
  await agent.click('hangup')
  await customer.note('cancelled the call')
  await bothIdle(customer, agent)
  await newestRecord(agent, 'outgoing', 'cancelled')
  await newestRecord(customer, 'missed', 'cancelled')
  await customer.page.waitForSelector('[data-testid=missed]:has-text("1 missed")')
  await close()
}, 240_000)

test('[END1] hang-up from either side ends the call at both', async () => {
  const { customer, agent, close } = await together()
  for (const [first, second] of [
    [customer, agent],
    [agent, customer],
  ] as const) {
    await connect(customer, agent, 'audio')
    await first.click('hangup')
    await second.note('has ended')
    await bothIdle(customer, agent)
    await newestRecord(customer, 'outgoing', 'ended')
    await newestRecord(agent, 'incoming', 'ended')
  }
  await close()
}, 240_000)

for (const side of isLong ? (['caller', 'callee', 'both'] as const) : (['both'] as const)) {
  const who = side === 'both' ? 'both reload' : `the ${side} reloads`
  test(`[PLACE2] ${who} in mid-call: the same call comes back with media both ways`, async () => {
    const { customer, agent, close } = await together()
    await connect(customer, agent, 'video')
    const callUuid = await agent.page.getAttribute('[data-testid=stage]', 'data-call')
    // A while of media: by then the service has proof of what both got, and repeats nothing that would help [PLACE5].
    await measureFlow(customer.page, 2)
    const reloading = { caller: [customer], callee: [agent], both: [customer, agent] }[side]
    await Promise.all(reloading.map(({ page }) => page.reload()))
    const logged = (page: Page, selector: string, options = {}) =>
      page.waitForSelector(selector, { state: 'attached', ...options })
    await Promise.all(reloading.map(({ page }) => logged(page, '[data-event="auth.ok"]')))
    // At once: without the page's own offer the other side would notice a dead path only after 15 seconds.
    // Who comes back makes a new offer; where both do, one of the two offers is enough.
    const offers = reloading.map(({ page }) =>
      logged(page, '[data-event="webrtc.offer"][data-direction=sent]', { timeout: 10_000 }),
    )
    await Promise.any(offers)
    await Promise.all([customer.phase('live'), agent.phase('live')])
    for (const { page } of [customer, agent]) {
      expect(await page.getAttribute('[data-testid=stage]', 'data-call')).toBe(callUuid)
    }
    const kinds = ['audio', 'video'] as const
    const flows = await Promise.all([customer, agent].map(({ page }) => measureFlow(page, 2, kinds)))
    for (const flow of flows) expectFlow(flow, kinds)
    await customer.click('hangup')
    await bothIdle(customer, agent)
    await close()
  }, 240_000)
}

test('[PLACE2] the caller reloads while it rings: it still rings, and can be answered', async () => {
  const { customer, agent, close } = await together()
  await customer.call(agent, 'audio')
  await agent.incoming()
  await customer.page.reload()
  await customer.phase('calling')
  await agent.click('accept')
  await Promise.all([customer.phase('live'), agent.phase('live')])
  await close()
}, 240_000)

test('[INV6] both call each other at the same moment: the second invite joins the first', async () => {
  const { customer, agent, close } = await together()
  // The ringing reaches the agent's page only after it has sent its own invite.
  const held = await agent.holdRinging()
  await customer.call(agent, 'audio')
  await held.arrived
  await agent.call(customer, 'audio')
  held.release()
  await Promise.all([customer.phase('live'), agent.phase('live')])
  await agent.page.waitForSelector('[data-testid=log-list] > [data-event="call.error"]', { state: 'attached' })
  const [one, other] = await Promise.all(
    [customer, agent].map(({ page }) => page.getAttribute('[data-testid=stage]', 'data-call')),
  )
  expect(one).toBe(other ?? '')
  await close()
}, 240_000)

test('mute and camera off stop what is sent, and go back on', async () => {
  const { customer, agent, close } = await together()
  await connect(customer, agent, 'video')
  /** The stage shows the wish; the sender has another track a moment later. */
  const sends = (...wanted: (readonly [string, boolean] | [])[]) =>
    customer.page.waitForFunction((wanted) => {
      const senders = window.ringwireDemo.peerConnection?.getSenders() ?? []
      const sent = senders.map(({ track }) => (track ? [track.kind, track.enabled] : []))
      return JSON.stringify(sent) === wanted
    }, JSON.stringify(wanted))
  await customer.click('mute')
  await customer.page.waitForSelector('[data-testid=stage][data-muted]')
  await sends(['audio', false], ['video', true])
  await customer.click('camera')
  // A camera that is off sends nothing; a microphone sends silence.
  await customer.page.waitForSelector('[data-testid=stage][data-camera-off]')
  await sends(['audio', false], [])
  await customer.click('mute')
  await customer.click('camera')
  await customer.page.waitForSelector('[data-testid=stage]:not([data-muted]):not([data-camera-off])')
  await sends(['audio', true], ['video', true])
  await close()
}, 240_000)

/** From its next load on the page notes each track that it hands to a connection, as it is at that moment. */
async function noteTracks({ page }: Participant): Promise<() => Promise<string[]>> {
  await page.addInitScript(() => {
    const noted: string[] = []
    const note = (track: unknown) => {
      if (track instanceof MediaStreamTrack) noted.push(`${track.kind} ${track.enabled ? 'live' : 'silent'}`)
    }
    Object.defineProperty(window, 'notedTracks', { value: noted })
    const { addTransceiver } = RTCPeerConnection.prototype
    RTCPeerConnection.prototype.addTransceiver = function (track, init) {
      note(track)
      return addTransceiver.call(this, track, init)
    }
    const { replaceTrack } = RTCRtpSender.prototype
    RTCRtpSender.prototype.replaceTrack = function (track) {
      note(track)
      return replaceTrack.call(this, track)
    }
  })
  return () => page.evaluate(() => (window as unknown as { notedTracks: string[] }).notedTracks)
}

test('who is muted is muted after a reload, before anything is sent; the next call begins with nothing muted', async () => {
  const { customer, agent, close } = await together()
  const { page } = customer
  const handedOver = await noteTracks(customer)
  const buttons = (pressed: boolean) =>
    Promise.all(
      ['mute', 'camera'].map((id) => page.waitForSelector(`[data-testid=${id}][aria-pressed=${pressed}]:enabled`)),
    )
  await connect(customer, agent, 'video')
  await customer.click('mute')
  await customer.click('camera')
  await buttons(true)
  await page.reload()
  await customer.phase('live')
  await buttons(true)
  await page.waitForSelector('[data-testid=stage][data-muted][data-camera-off]')
  const [silence] = await measureFlow(agent.page, 1, ['audio'])
  expect(silence?.audio).toBeGreaterThan(0)
  expect(silence?.video).toBe(0)
  expect([...new Set(await handedOver())]).toEqual(['audio silent'])
  // And both go back on.
  await customer.click('mute')
  await customer.click('camera')
  await buttons(false)
  expect((await measureFlow(agent.page, 4, ['video'])).some(({ video }) => video > 0)).toBe(true)

  await customer.click('mute')
  await customer.click('hangup')
  await bothIdle(customer, agent)
  await connect(agent, customer, 'video')
  await buttons(false)
  await page.waitForSelector('[data-testid=stage]:not([data-muted]):not([data-camera-off])')
  await close()
}, 240_000)

test('[INV6] who was muted before the call became the one of the other is muted after a reload, too', async () => {
  const { customer, agent, close } = await together()
  const held = await agent.holdRinging()
  await customer.call(agent, 'audio')
  await held.arrived
  await agent.call(customer, 'audio')
  await agent.click('mute')
  await agent.page.waitForSelector('[data-testid=stage][data-muted]')
  held.release()
  await Promise.all([customer.phase('live'), agent.phase('live')])
  await agent.page.reload()
  await agent.phase('live')
  await agent.page.waitForSelector('[data-testid=stage][data-muted]')
  await close()
}, 240_000)

test('a camera that goes off leaves no frozen picture behind, and its picture comes back', async () => {
  const { customer, agent, close } = await together()
  await connect(customer, agent, 'video')
  // Both at one moment: on a busy machine the picture may stop for a while and come again.
  const shows = (what: 'picture' | 'portrait') =>
    agent.page.waitForFunction((what) => {
      const video = document.querySelector('[data-testid=remote-video]') as Element
      const hasPortrait = document.querySelector('[data-testid=stage] .rw-portrait') !== null
      return (
        getComputedStyle(video).opacity === (what === 'picture' ? '1' : '0') && hasPortrait === (what === 'portrait')
      )
    }, what)
  await agent.page.waitForSelector('[data-testid=call-path]:has-text("×")')
  await shows('picture')
  await customer.click('camera')
  await agent.page.waitForSelector('[data-testid=no-picture]:has-text("camera off")')
  await shows('portrait')
  await agent.page.waitForSelector('[data-testid=call-path]:not(:has-text("×"))')
  // The sound goes on, so the call does not look as if it were lost.
  expect(await agent.page.textContent('[data-testid=call-state]')).toMatch(/^\d+:\d\d$/)
  await customer.click('camera')
  await agent.page.waitForSelector('[data-testid=no-picture]', { state: 'hidden' })
  await shows('picture')
  await close()
}, 240_000)

test('where neither sound nor picture comes, the page says that, too', async () => {
  const { customer, agent, close } = await together()
  await connect(customer, agent, 'video')
  await customer.page.evaluate(async () => {
    for (const sender of window.ringwireDemo.peerConnection?.getSenders() ?? []) await sender.replaceTrack(null)
  })
  await agent.page.waitForSelector('[data-testid=nothing-arrives]:has-text("You cannot hear or see")')
  await close()
}, 240_000)
