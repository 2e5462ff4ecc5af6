import { afterAll, beforeAll, expect, test } from 'bun:test'
import { openBrowser } from '@ringwire/testkit/browser'
import { invite, someone } from '@ringwire/testkit/flows'
import { openReceiver, type Receiver } from '@ringwire/testkit/receiver'
import type { Browser } from 'playwright-core'
import { adminUrlOf } from '../admin/observed.ts'
import { createBox } from '../cli/command.ts'
import { worldFor } from '../failures/world.ts'
import { type Operator, signIn, token } from './operator.ts'

/* Outages that are rehearsed: what an operator finds on the page of a node, who reads nothing else. */

const world = worldFor({
  env: {
    ...{ RINGWIRE_ADMIN_PORT: '0', RINGWIRE_ADMIN_TOKEN: token, RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1' },
    RINGWIRE_RING_TIMEOUT_MS: '5000',
  },
})
const box = createBox()
const stage = {} as { browser: Browser; receiver: Receiver; operator: Operator }
beforeAll(async () => {
  const [browser, receiver] = await Promise.all([openBrowser(), openReceiver()])
  Object.assign(stage, { browser, receiver, operator: await signIn(browser, world().one) })
}, 120_000)
afterAll(async () => {
  await Promise.all([stage.browser?.close(), stage.receiver?.close(), box.clean()])
})

/** How long the page has for its sentence, in ms: a node is known to be dead within 8 s. */
const patience = { timeout: 45_000 }

/** What the page says is wrong, as people see it: one trouble for each. */
async function troubles(): Promise<string[]> {
  const { page } = stage.operator
  return page.locator('[data-testid=troubles] li').allInnerTexts()
}

/** The page says exactly this one thing, and that it began between then and now. The command line says the same. */
async function saysOnly(what: string, remedy: string, begun: number): Promise<void> {
  const { page } = stage.operator
  await page.waitForSelector(`[data-testid=troubles] li:has-text(${JSON.stringify(what)})`, patience)
  const said = await troubles()
  expect(said).toHaveLength(1)
  const [, clock = '', duration] = /Since (\d+:\d\d:\d\d\s[AP]M), for ([\d.]+ (?:ms|s))\./.exec(said[0] ?? '') ?? []
  expect([said[0], duration]).toEqual([expect.stringContaining(remedy), expect.any(String)])
  const since = new Date(`${new Date().toDateString()} ${clock.replace(/\s/, ' ')}`).getTime()
  expect(since).toBeWithin(begun - 1_000, Date.now() + 1)
  const { out } = await box.run(`overview --url ${await adminUrlOf(world().one)}`, {
    env: { RINGWIRE_ADMIN_TOKEN: token },
  })
  expect(out.split('\n').filter((line) => line.startsWith('Wrong'))).toEqual([expect.stringContaining(what)])
}

async function saysNothing(): Promise<void> {
  await stage.operator.page.waitForSelector(
    '[data-testid=troubles] p:has-text("Nothing is known to be wrong")',
    patience,
  )
  expect(await troubles()).toEqual([])
}

test('[ADM2] nothing is wrong, and the page says so', saysNothing, 60_000)

test('[ADM2] Redis is gone: the page says that it is Redis, since when, and that no node is to be restarted', async () => {
  const begun = Date.now()
  await world().redis.kill()
  await saysOnly('Redis is away, or takes no writes.', 'Start Redis again, empty if need be', begun)
  expect(await stage.operator.look('outage-redis')).toEqual([])
  await world().redis.restart()
  await saysNothing()
}, 180_000)

test('[ADM2] a node is killed: the page of another one names it, until it is there again', async () => {
  const { two } = world()
  const begun = Date.now()
  await two.kill()
  await saysOnly('Node two has died: it was not stopped in order.', 'Start it again, or leave it.', begun)
  expect(await stage.operator.look('outage-node')).toEqual([])
  await two.start()
  await saysNothing()
  // A node that is stopped in order is no trouble.
  expect(await two.terminate()).toBe(0)
  await stage.operator.page.waitForSelector('[data-testid=nodes] h2:text-is("1 node")', patience)
  await saysNothing()
  await two.start()
}, 180_000)

test('[ADM2] a webhook endpoint fails: the page names it, its product and its last answer, until it is disabled', async () => {
  const { receiver, operator } = stage
  receiver.reply(() => 500)
  const begun = Date.now()
  await operator.page.evaluate(async (url) => {
    const post = { method: 'POST', headers: { 'X-Ringwire-Admin': '1' } }
    const answer = await fetch('api/products/shop/webhooks', { ...post, body: JSON.stringify({ url }) })
    const { id } = await answer.json()
    await fetch(`api/products/shop/webhooks/${id}/test`, { ...post, body: '{}' })
  }, receiver.url)
  await saysOnly(`The webhook endpoint ${receiver.url} of shop fails:`, 'the last answer was 500.', begun)
  expect((await troubles()).join()).toContain('What waits is sent again by itself.')
  expect(await operator.look('outage-webhook')).toEqual([])
  await operator.page.click('[data-trouble=webhook] a')
  await operator.page.click('[data-testid=webhooks] li button:has-text("Deliveries")')
  await operator.page.waitForSelector('[data-testid=webhooks] tr:has-text("webhook.test"):has-text("500")')
  await operator.page.click('[data-testid=webhooks] li button:text-is("Disable")')
  await operator.page.click('dialog[open] [data-testid=confirm]')
  await operator.page.waitForSelector('[data-testid=webhooks] li .badge:text-is("disabled")')
  await operator.page.keyboard.press('1')
  await saysNothing()
}, 180_000)

test('[ADM2] [TRACE1] a call did not ring: its page says why, also where nobody is woken', async () => {
  const { page } = stage.operator
  const [callerId, calleeId] = [someone('ann'), someone('ben')]
  const caller = await world().one.connect({ user_id: callerId, role: 'customer' })
  const callUuid = await invite(caller, calleeId)
  await caller.next('call.missed')
  await page.keyboard.press('2')
  await page.selectOption('[data-testid=status]', 'missed')
  await page.click(`[data-call="${callUuid}"] a.mono`)
  const why = `Agent ${calleeId} was not connected and has no registered device.`
  await page.waitForSelector(`[data-testid=summary]:text-is(${JSON.stringify(why)})`)
  expect(await stage.operator.look('outage-call')).toEqual([])
  expect(stage.operator.faults).toEqual([])
  await caller.close()
}, 120_000)
