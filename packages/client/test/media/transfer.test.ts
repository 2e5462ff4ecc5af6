import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { openPhone, type Phone, pairOf } from './support/people.ts'
import { type Phones, startPhones } from './support/phones.ts'

/* Transfers, in real browsers: the target sees and hears the transferred side [XFER1]. */

let phones: Phones
beforeAll(async () => {
  phones = await startPhones()
}, 240_000)
afterAll(() => phones?.stop())

/** Ann talks to Ben, who may call agents. Both follow transfers. Eva's page answers by itself, unless `eva` says otherwise. */
async function three(eva = ''): Promise<{ ann: Phone; ben: Phone; eva: Phone }> {
  const { browser, url } = phones
  const [one, two, target] = await Promise.all([
    openPhone(browser, url, 'customer', 'transfers'),
    openPhone(browser, url, 'agent', 'transfers&peer=agent'),
    openPhone(browser, url, 'agent', eva),
  ])
  await pairOf(one, two).connect('video')
  return { ann: one, ben: two, eva: target }
}

const transfer = (page: Page, userId: string) =>
  page.evaluate(async (userId) => {
    const { transfers, call } = window.phone
    if (call) await transfers.transfer(call, { userId, role: 'agent' })
  }, userId)

const untilOver = (page: Page, callUuid: string) =>
  page.waitForFunction((uuid) => !window.phone.client.find(uuid), callUuid)
const uuidOf = (page: Page) => page.evaluate(() => window.phone.call?.callUuid ?? '')

async function closeAll(...all: Phone[]): Promise<void> {
  for (const { page, failures, close } of all) {
    expect([...(await page.evaluate(() => window.phone.errors)), ...failures]).toEqual([])
    await close()
  }
}

test('[XFER1] sound and picture go on with the target, and end with the one that transferred', async () => {
  const { ann, ben, eva } = await three()
  const first = await uuidOf(ann.page)
  await transfer(ben.page, eva.userId)
  await Promise.all([untilOver(ann.page, first), untilOver(ben.page, first)])
  await pairOf(ann, eva).expectMediaAtLast(4, ['audio', 'video'])
  expect(await ben.page.evaluate(() => window.phone.media?.state.name)).toBe('closed')
  expect(await ann.page.evaluate(() => window.phone.call?.peer.userId)).toBe(eva.userId)
  await closeAll(ann, ben, eva)
}, 240_000)

test('[XFER1] who is muted stays muted, and who holds stays on hold', async () => {
  const { ann, ben, eva } = await three()
  const first = await uuidOf(ann.page)
  await ann.page.evaluate(async () => {
    await window.phone.media?.setMuted('audio', true)
    await window.phone.call?.hold()
  })
  await transfer(ben.page, eva.userId)
  await untilOver(ann.page, first)
  await eva.page.waitForFunction(() => window.phone.call?.peerState.held === true)
  expect(await ann.page.evaluate(() => window.phone.media?.state)).toMatchObject({
    ...{ held: true, muted: { audio: true, video: false } },
  })
  await ann.page.evaluate(() => window.phone.call?.resume())
  await eva.page.evaluate(() => window.phone.arriving(['video']))
  // The service may tell of it after the first pictures.
  await eva.page.waitForFunction(() => {
    const told = window.phone.call?.peerState.media
    return told?.audio === false && told.video
  })
  await closeAll(ann, ben, eva)
}, 240_000)

test('[XFER1] a page that is loaded again while the target is rung: media goes on with Ben, then with Eva', async () => {
  const { ann, ben, eva } = await three('silent')
  const first = await uuidOf(ann.page)
  await transfer(ben.page, eva.userId)
  await eva.page.waitForFunction(() => window.phone.call !== undefined)
  await ann.page.reload()
  await ann.page.waitForFunction((uuid) => window.phone?.call?.callUuid === uuid, first)
  await pairOf(ann, ben).expectMediaAtLast(2, ['audio', 'video'])
  await eva.page.evaluate(async () => {
    const { phone } = window
    if (!phone.call) return
    phone.take(phone.call)
    await phone.call.accept()
  })
  await Promise.all([untilOver(ann.page, first), untilOver(ben.page, first)])
  await pairOf(ann, eva).expectMediaAtLast(4, ['audio', 'video'])
  await closeAll(ann, ben, eva)
}, 240_000)
