import { expect, test } from 'bun:test'
import { expectFlow, measureFlow } from './support/flow.ts'
import { findLayoutFaults } from './support/layout.ts'
import { goOnline, type Participant } from './support/participant.ts'
import { withServiceAndBrowser } from './support/stage.ts'

/* A customer calls the group of all agents, and is handed over from one to the other. */

// Nothing rings out while the layout is looked at on each screen.
const stage = withServiceAndBrowser({ RINGWIRE_RING_TIMEOUT_MS: '120000' })
/** A phone held upright and on its side, a short window, a narrow one and a wide one. */
const screens = [
  [390, 844],
  [844, 390],
  [390, 480],
  [780, 700],
  [1280, 800],
] as const

async function expectNoFault({ page }: Participant): Promise<void> {
  const faults: string[] = []
  for (const [width, height] of screens) {
    await page.setViewportSize({ width, height })
    faults.push(...(await findLayoutFaults(page)).map((fault) => `${width}x${height}: ${fault}`))
  }
  expect(faults).toEqual([])
}

const at = (testId: string) => `[data-testid=${testId}]`

test('[GROUP1] [XFER1] Support rings at all agents; the one who answers hands the customer over', async () => {
  const open = (role: 'customer' | 'agent', name: string) => goOnline(stage.browser, stage.service.url, { role, name })
  const [ann, ben, eva] = await Promise.all([
    open('customer', 'Ann Lee'),
    open('agent', 'Ben Ortiz'),
    open('agent', 'Eva Stein'),
  ])
  await ann.page.click(`${at('support')} ${at('call-video')}`)
  await Promise.all([ben.incoming(), eva.incoming()])
  await ben.page.waitForSelector(`${at('alert')}:text-is("Incoming video call for support")`)
  await ben.click('accept')
  await eva.page.waitForSelector(at('incoming'), { state: 'detached' })
  await Promise.all([ann.phase('live'), ben.phase('live')])
  await ann.page.waitForSelector(`${at('call-name')}:text-is("Ben Ortiz")`)
  await ben.page.waitForSelector(at('local-video'))
  await expectNoFault(ben)
  await ben.click('transfer')
  const toEva = `dialog[open] ${at('transfer-now')}[aria-label="Transfer to Eva Stein"]`
  await ben.page.waitForSelector(toEva)
  // The dialog is dark in either scheme.
  const colours = await ben.page.evaluate(() =>
    [...document.querySelectorAll('dialog[open] :is(h2, li span, li button)')].map((it) => getComputedStyle(it).color),
  )
  expect([...new Set(colours)]).toEqual(['rgb(255, 255, 255)'])
  await ben.page.click(toEva)
  await eva.page.waitForSelector(`${at('alert')}:has-text("Transferred by Ben Ortiz")`)
  for (const one of [ann, ben]) {
    await one.page.waitForSelector(at('transfer-notice'))
    await one.page.waitForSelector(at('local-video'))
    await expectNoFault(one)
  }
  // Ann's call has had all its controls for a while: none of them transfers.
  expect(await ann.page.locator(at('transfer')).count()).toBe(0)
  await eva.click('accept')
  await ann.page.waitForSelector(`${at('call-name')}:has-text("Eva Stein")`)
  await Promise.all([ann.phase('live'), eva.phase('live')])
  const kinds = ['audio', 'video'] as const
  for (const flow of await Promise.all([ann, eva].map(({ page }) => measureFlow(page, 4, kinds))))
    expectFlow(flow, kinds)
  await ben.note('The call was transferred.')
  await eva.click('hangup')
  await ann.phase('idle')
  for (const one of [ann, ben, eva]) {
    expect(one.errors).toEqual([])
    await one.close()
  }
}, 240_000)
