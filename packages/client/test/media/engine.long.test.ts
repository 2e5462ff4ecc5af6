import { expect, test } from 'bun:test'
import { openBrowser } from '@ringwire/testkit/browser'
import { expectFlow, measureFlow } from '../../../demo/test/support/flow.ts'
import { goOnline } from '../../../demo/test/support/participant.ts'
import { expectMedia, hangUp, kinds, restart, withPrograms } from './support/engine-stage.ts'

/* Another WebRTC engine than a browser's: the SDK in Bun, and in Node against the page of the demo in Chromium. */

const { url, phone, call } = withPrograms()

test('Bun calls Node: sound and picture arrive, also after a restart of ICE; the end closes both', async () => {
  const { caller, both } = await call(['Bun', 'Node'])
  await expectMedia(both)
  await restart([caller])
  await expectMedia(both)
  await hangUp(caller, both)
}, 240_000)

test('a page of the demo in Chromium and Node call each other: both hear and see, also after a restart of ICE', async () => {
  const browser = await openBrowser()
  try {
    const [page, program] = await Promise.all([goOnline(browser, url(), { role: 'customer' }), phone('Node', 'agent')])
    const expectBoth = async () => {
      expectFlow(await measureFlow(page.page, 3, kinds), kinds)
      await expectMedia([program])
    }

    await page.call(program, 'video')
    await Promise.all([page.phase('live'), program.ask('flowing')])
    await expectBoth()
    await restart([program])
    await expectBoth()
    await page.click('hangup')
    expect(await program.ask('over')).toMatchObject({ state: { status: 'ended', reason: 'hangup' }, errors: [] })

    await program.ask('dial', page.userId, 'customer')
    await page.incoming()
    await page.click('accept')
    await Promise.all([page.phase('live'), program.ask('flowing')])
    await expectBoth()
    await program.ask('hangUp')
    await page.phase('idle')
    expect(await program.leave()).toBe(0)
    expect(page.errors).toEqual([])
  } finally {
    await browser.close()
  }
}, 240_000)
