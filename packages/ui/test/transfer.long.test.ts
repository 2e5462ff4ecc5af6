import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { serious } from '@ringwire/testkit/axe'
import { becomes } from '@ringwire/testkit/becomes'
import { openBrowser } from '@ringwire/testkit/browser'
import { someone } from '@ringwire/testkit/flows'
import type { Browser, Page } from 'playwright-core'
import { noteConnections, receives } from './support/flow.ts'
import { hasFocus, hasFocusNamed, tabTo } from './support/keyboard.ts'
import { announces, at, openPerson, phase, seesPeer, talksTo } from './support/people.ts'
import { picture } from './support/pictures.ts'
import { bundlePage, openSite, type Site } from './support/site.ts'

/* Ann calls Ben, who hands her over to Eva [XFER1]. */

let browser: Browser
let site: Site
beforeAll(async () => {
  const page = join(import.meta.dir, 'page', 'phone.tsx')
  ;[browser, site] = await Promise.all([openBrowser(), bundlePage(page).then((bundle) => openSite(bundle))])
}, 240_000)
afterAll(async () => {
  await browser?.close()
  await site?.close()
})

async function three(callType: 'audio' | 'video' = 'video', more: Record<string, string> = {}) {
  const [annId, benId, evaId, maxId] = ['ann', 'ben', 'eva', 'max'].map(someone) as [string, string, string, string]
  const team = JSON.stringify([
    { userId: evaId, role: 'agent', displayName: 'Eva Stein', about: 'online' },
    { userId: maxId, role: 'agent', displayName: 'Max Abel' },
  ])
  const agent = { role: 'agent', peer: 'agent', team, ...more }
  const [ann, ben, eva] = await Promise.all([
    openPerson(browser, site, {
      user: annId,
      role: 'customer',
      peer: 'agent',
      name: 'Ann Lee',
      calls: benId,
      team: '[]',
    }),
    openPerson(browser, site, { ...agent, user: benId, name: 'Ben Ortiz' }),
    openPerson(browser, site, { ...agent, user: evaId, name: 'Eva Stein' }),
  ])
  await Promise.all([ann, ben, eva].map(noteConnections))
  await ann.click(at(`call-${callType}`))
  await ben.click(at('accept'))
  await Promise.all([phase(ann, 'live'), phase(ben, 'live')])
  const close = () => Promise.all([ann, ben, eva].map((page) => page.context().close()))
  return { ann, ben, eva, benId, close }
}

const notice = (text: string) => `${at('transfer-notice')}:has-text("${text}")`

async function transferToEva(ben: Page): Promise<void> {
  await ben.click(at('transfer'))
  await ben.click(`${at('transfer-now')}[aria-label="Transfer to Eva Stein"]`)
}

test('[XFER1] by the keyboard: the target declines, then answers; media goes on there, and what was muted stays so', async () => {
  const { ann, ben, eva, close } = await three()
  await seesPeer(ben)
  await tabTo(ben, 'transfer')
  await ben.keyboard.press('Enter')
  await hasFocus(ben, 'transfer-search')
  await becomes(() => ben.locator(at('transfer-now')).count(), 2)
  await picture(ben, 'transfer')
  expect(await serious(ben)).toEqual([])
  await ben.keyboard.type('xx')
  await ben.waitForSelector(`${at('transfer-dialog')}:has-text("Nobody found.")`)
  // The first one empties the field, as browsers do it.
  await ben.keyboard.press('Escape')
  await ben.waitForFunction(() => document.querySelectorAll('[data-testid=transfer-now]').length === 2)
  await ben.keyboard.press('Escape')
  await ben.waitForSelector(at('transfer-dialog'), { state: 'detached' })
  await hasFocus(ben, 'transfer')

  await ben.keyboard.press('Enter')
  await hasFocus(ben, 'transfer-search')
  // A letter of a name mutes nobody.
  await ben.keyboard.type('evm')
  await ben.keyboard.press('Backspace')
  await ben.waitForFunction(() => document.querySelectorAll('[data-testid=transfer-now]').length === 1)
  await tabTo(ben, 'transfer-now')
  await ben.keyboard.press('Enter')
  await ben.waitForSelector(notice('Transferring to Eva Stein …'))
  await hasFocusNamed(ben, 'Call controls')
  expect(await ben.getAttribute(at('mute'), 'aria-pressed')).toBe('false')
  await ben.waitForSelector(`${at('transfer')}:disabled`)
  await ann.waitForSelector(notice('Ben Ortiz is connecting you with somebody else …'))
  await eva.waitForSelector(`${at('alert')}:has-text("Transferred by Ben Ortiz")`)
  for (const [page, name] of [
    [ann, 'transferred'],
    [ben, 'transferring'],
    [eva, 'incoming-transfer'],
  ] as const) {
    await picture(page, name)
    expect(await serious(page)).toEqual([])
  }
  await Promise.all([receives(ann), receives(ben)])
  await eva.click(at('reject'))
  await Promise.all([
    ben.waitForSelector(notice('Eva Stein declined.')),
    ann.waitForSelector(notice('Somebody else declined.')),
  ])
  await announces(ben, 'Eva Stein declined.')
  await picture(ben, 'transfer-failed')
  await ben.click(at('close-transfer'))
  await ben.waitForSelector(at('transfer-notice'), { state: 'detached' })

  await ann.click(at('mute'))
  await transferToEva(ben)
  await eva.click(at('accept'))
  await talksTo(ann, 'Eva Stein')
  await Promise.all([seesPeer(ann), seesPeer(eva), receives(ann), phase(ben, 'over')])
  await ben.waitForSelector(`${at('ended')}:has-text("The call was transferred.")`)
  await ann.waitForSelector(`${at('mute')}[aria-pressed=true]`)
  await eva.waitForSelector(at('peer-muted'))
  await ann.click(at('mute'))
  await receives(eva)
  await eva.click(at('hangup'))
  await phase(ann, 'over')
  await close()
}, 240_000)

test('[XFER1] who is transferred may stay', async () => {
  const { ann, ben, eva, close } = await three('audio')
  await transferToEva(ben)
  await eva.waitForSelector(at('incoming'))
  await ann.click(`${at('stay')}:has-text("Stay with Ben Ortiz")`)
  await ben.waitForSelector(notice('The transfer was stopped.'))
  await eva.waitForSelector(at('incoming'), { state: 'detached' })
  await Promise.all([receives(ann, ['audio']), receives(ben, ['audio'])])
  await close()
}, 240_000)

test('[XFER1] [HOLD1] somebody who is asked first declines: the user reads it, and the call goes on', async () => {
  const { ann, ben, eva, close } = await three('audio')
  await ben.click(at('transfer'))
  await ben.click(`${at('ask-first')}[aria-label="Ask first: Eva Stein"]`)
  await ann.waitForSelector(at('held-by-peer'))
  await eva.click(at('reject'))
  await ben.waitForSelector(`${at('unanswered')}:has-text("Eva Stein declined. The call with Ann Lee goes on.")`)
  await ann.waitForSelector(at('held-by-peer'), { state: 'detached' })
  await Promise.all([receives(ann, ['audio']), receives(ben, ['audio'])])
  await picture(ben, 'unanswered')
  expect(await serious(ben)).toEqual([])
  await ben.click(at('close-unanswered'))
  await ben.waitForSelector(at('unanswered'), { state: 'detached' })

  // The user knows of a call that the user cancelled, and of one that was answered.
  await ben.click(at('transfer'))
  await ben.click(`${at('ask-first')}[aria-label="Ask first: Eva Stein"]`)
  await eva.waitForSelector(at('incoming'))
  await ben.click(at('hangup'))
  await talksTo(ben, 'Ann Lee')
  await ben.click(at('transfer'))
  await ben.click(`${at('ask-first')}[aria-label="Ask first: Eva Stein"]`)
  await eva.click(at('accept'))
  await Promise.all([phase(ben, 'live'), phase(eva, 'live'), talksTo(ben, 'Eva Stein')])
  await eva.click(at('hangup'))
  await talksTo(ben, 'Ann Lee')
  await receives(ann, ['audio'])
  expect(await ben.locator(at('unanswered')).count()).toBe(0)
  await close()
}, 240_000)

test('[XFER1] who hangs up while a transfer rings is asked first, because the transfer would stop', async () => {
  const { ann, ben, eva, close } = await three('audio')
  await transferToEva(ben)
  await eva.waitForSelector(at('incoming'))
  await ben.waitForSelector(notice('Transferring to Eva Stein …'))
  await ben.click(at('hangup'))
  await ben.waitForSelector(`${at('question')}:has-text("Stop the transfer and hang up on Ann Lee?")`)
  // The key that asked may still be held.
  await hasFocus(ben, 'close-dialog')
  await picture(ben, 'hang-up-question')
  expect(await serious(ben)).toEqual([])
  await ben.keyboard.press('Escape')
  await ben.waitForSelector(at('question'), { state: 'detached' })
  await hasFocus(ben, 'hangup')
  await Promise.all([receives(ann, ['audio']), receives(ben, ['audio'])])
  await ben.click(at('hangup'))
  await ben.waitForSelector(at('question'))
  // The answer comes from elsewhere.
  await eva.click(at('reject'))
  await ben.waitForSelector(at('question'), { state: 'detached' })
  await ben.waitForSelector(notice('Eva Stein declined.'))

  await transferToEva(ben)
  await eva.waitForSelector(at('incoming'))
  await ben.click(at('hangup'))
  await ben.click(at('yes'))
  await Promise.all([phase(ann, 'over'), phase(ben, 'over')])
  await eva.waitForSelector(at('incoming'), { state: 'detached' })
  await close()
}, 240_000)

test('[XFER1] [WAIT1] two customers who do not know each other are connected only after a question', async () => {
  const { ann, ben, benId, close } = await three('audio', { busy: 'wait', peer: 'customer' })
  const customer = { role: 'customer', peer: 'agent', team: '[]' }
  const dan = await openPerson(browser, site, { ...customer, user: someone('dan'), name: 'Dan Roth', calls: benId })
  await noteConnections(dan)
  await dan.click(at('call-audio'))
  await ben.click(at('hold-and-answer'))
  await ben.waitForSelector(`${at('second-call')}:has-text("Ann Lee is on hold")`)
  await phase(ben, 'live')
  expect(await ben.locator(at('connect-both')).count()).toBe(0)
  await ben.reload()
  await ben.waitForSelector(`${at('second-call')}:has-text("Ann Lee is on hold")`)
  await phase(ben, 'live')
  expect(await ben.locator(at('connect-both')).count()).toBe(0)
  await ben.click(`${at('transfer')}[aria-label="Connect them"]`)
  await ben.waitForSelector(`${at('question')}:has-text("Connect Ann Lee with Dan Roth?")`)
  await picture(ben, 'connect-question')
  expect(await serious(ben)).toEqual([])
  await ben.click(at('close-dialog'))
  await ben.waitForSelector(at('question'), { state: 'detached' })
  await receives(dan, ['audio'])
  expect(await ben.locator(at('second-call')).count()).toBe(1)
  await ben.click(at('transfer'))
  await ben.click(at('yes'))
  await Promise.all([talksTo(ann, 'Dan Roth'), talksTo(dan, 'Ann Lee'), phase(ben, 'over')])
  await Promise.all([receives(ann, ['audio']), receives(dan, ['audio'])])
  await dan.context().close()
  await close()
}, 240_000)

test('[XFER1] [WAIT1] somebody is asked first: back and forth between the two, then they go on with each other', async () => {
  const { ann, ben, eva, close } = await three()
  await ben.click(at('transfer'))
  await ben.click(`${at('ask-first')}[aria-label="Ask first: Eva Stein"]`)
  await ann.waitForSelector(`${at('held-by-peer')}:has-text("Ben Ortiz put you on hold")`)
  await ben.waitForSelector(at('second-call'))
  // Neither can be done while it still rings.
  expect(await ben.locator(`${at('swap')}, ${at('connect-both')}`).count()).toBe(0)
  await eva.click(at('accept'))
  await Promise.all([seesPeer(ben), seesPeer(eva)])
  await ben.waitForSelector(`${at('second-call')}:has-text("Ann Lee is on hold")`)
  await picture(ben, 'consult')
  expect(await serious(ben)).toEqual([])
  await ben.reload()
  await ben.waitForSelector(`${at('second-call')}:has-text("Ann Lee is on hold")`)
  await noteConnections(ben)
  await ben.click(at('swap'))
  await eva.waitForSelector(at('held-by-peer'))
  await Promise.all([talksTo(ben, 'Ann Lee'), seesPeer(ann)])
  await ben.click(at('swap'))
  await ann.waitForSelector(at('held-by-peer'))
  await ben.click(at('connect-both'))
  await Promise.all([talksTo(ann, 'Eva Stein'), talksTo(eva, 'Ann Lee'), phase(ben, 'over')])
  await Promise.all([seesPeer(ann), seesPeer(eva), receives(ann), receives(eva)])
  await ben.waitForSelector(`${at('ended')}:has-text("The call was transferred.")`)
  await ben.waitForFunction(() => window.client.calls.length === 0)
  await close()
}, 240_000)

test('the controls of a phone have room for one more', async () => {
  const { ben, close } = await three()
  for (const [width, height] of [
    [390, 844],
    [844, 390],
    [320, 568],
  ] as const) {
    await ben.setViewportSize({ width, height })
    const outside = await ben.evaluate(() =>
      [...document.querySelectorAll('.rw-controls button')].flatMap((button) => {
        const { left, right, bottom, x, y, width, height } = button.getBoundingClientRect()
        const hit = document.elementFromPoint(x + width / 2, y + height / 2)
        const isInside = left >= 0 && right <= innerWidth && bottom <= innerHeight
        return isInside && button.contains(hit) ? [] : [button.getAttribute('aria-label')]
      }),
    )
    expect([width, height, ...outside]).toEqual([width, height])
  }
  await close()
}, 240_000)
