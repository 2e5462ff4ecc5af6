import { afterAll, beforeAll, expect, test } from 'bun:test'
import { becomes } from '@ringwire/testkit/becomes'
import { openBrowser } from '@ringwire/testkit/browser'
import { acceptedCall, connectPair, invite, someone } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import type { Browser } from 'playwright-core'
import { adminUrlOf, startObserved } from '../admin/observed.ts'
import { finish } from '../scenarios/calls/composition.ts'
import { threeOf } from '../support/transfer-flows.ts'
import { look, signIn, token } from './operator.ts'

const stage = {} as { service: Service; browser: Browser }
beforeAll(async () => {
  const [service, browser] = await Promise.all([
    startObserved({ RINGWIRE_ADMIN_TOKEN: token, RINGWIRE_RING_TIMEOUT_MS: '120000' }),
    openBrowser(),
  ])
  Object.assign(stage, { service, browser })
}, 240_000)
afterAll(async () => {
  await stage.browser?.close()
  if (stage.service) await finish(stage.service)
})

test('[ADM2] a wrong token is said; the right one leads in, and signing out leads to the form', async () => {
  const { browser, service } = stage
  const page = await browser.newPage()
  await page.goto(`${await adminUrlOf(service)}/admin/`)
  await page.fill('[data-testid=token]', 'not the token')
  await page.click('[data-testid=enter]')
  await page.waitForSelector('[role=alert]:has-text("This is not the admin token.")')
  expect(await look(page, 'sign-in')).toEqual([])
  await page.close()
  const operator = await signIn(browser, service)
  await operator.page.click('[data-testid=leave]')
  await operator.page.waitForSelector('[data-testid=token]')
  await operator.page.reload()
  await operator.page.waitForSelector('[data-testid=token]')
  // What the page was just asking for when the operator left is refused.
  expect(operator.faults.filter((fault) => !/401/.test(fault))).toEqual([])
  await operator.page.close()
}, 240_000)

test('[ADM2] a key that is pressed at the first sight of the page leads to its view', async () => {
  const { browser, service } = stage
  const { page } = await signIn(browser, service)
  await page.addInitScript(() => {
    const press = () => {
      if (document.querySelector('[data-testid=leave]') === null) return
      shown.disconnect()
      document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '3', bubbles: true }))
    }
    const shown = new MutationObserver(press)
    shown.observe(document, { childList: true, subtree: true })
  })
  await page.reload()
  await page.waitForSelector('h1:text-is("People")')
  await page.close()
}, 240_000)

test('[ADM2] Now shows the sockets, the calls and the stores, and goes on by itself', async () => {
  const { browser, service } = stage
  const operator = await signIn(browser, service)
  const { page } = operator
  await page.waitForSelector('[data-testid=health]:has-text("Database: ok")')
  const pair = await connectPair(service)
  await acceptedCall(pair)
  const other = await connectPair(service)
  await invite(other.caller, other.calleeId)
  await page.waitForSelector('[data-testid=chart-Connections] strong:has-text("4")')
  const ages = page.locator('[data-testid=calls-by-age] tbody tr')
  await page.waitForFunction(() =>
    document.querySelectorAll('[data-testid=calls-by-age] tbody tr')[1]?.textContent?.startsWith('accepted1'),
  )
  await becomes(() => ages.first().textContent(), /^ringing1/)
  await page.waitForFunction(
    () => (document.querySelector('[data-testid=chart-Invites] .line')?.getAttribute('d') ?? '').length > 10,
  )
  expect(await operator.look('now')).toEqual([])
  await Promise.all([pair, other].flatMap(({ caller, callee }) => [caller.close(), callee.close()]))
  await page.waitForSelector('[data-testid=chart-Connections] strong:has-text("0")')
  expect(operator.faults).toEqual([])
  await page.close()
}, 240_000)

test('[ADM2] a call is found, looked at and ended; a name that is a script is a text', async () => {
  const { browser, service } = stage
  const script = '<img src=x onerror=alert(1)><script>alert(2)</script>'
  const callerId = someone('"><svg onload=alert(3)>')
  const calleeId = someone('agent')
  const caller = await service.connect({ user_id: callerId, role: 'customer', display_name: script })
  const callee = await service.connect({ user_id: calleeId, role: 'agent', device_id: "x'onclick='alert(4)" })
  const callUuid = await invite(caller, calleeId, { context_type: 'order', context_id: 'javascript:alert(5)' })
  await callee.next('call.ringing')

  const operator = await signIn(browser, service)
  const { page } = operator
  await page.keyboard.press('2')
  const row = page.locator(`[data-call="${callUuid}"]`)
  await row.waitFor()
  expect(await row.textContent()).toContain(script)
  expect(await operator.look('calls')).toEqual([])
  callee.send('call.accept', { call_uuid: callUuid })
  await caller.next('call.accepted')
  await row.locator('.badge:has-text("accepted")').waitFor()

  await page.keyboard.press('/')
  await page.keyboard.type('javascript:')
  await page.keyboard.press('Enter')
  await page.waitForSelector('text=searched')
  await row.locator('a.mono').click()
  await page.waitForSelector('[data-testid=summary]:has-text("The call goes on")')
  await page.waitForSelector('[data-testid=timeline] strong:has-text("accepted")')
  const timeline = page.locator('[data-testid=timeline]')
  await becomes(() => timeline.textContent(), /x'onclick='alert\(4\)/)
  expect(await operator.look('call')).toEqual([])

  await page.click('[data-testid=end-call]')
  await page.click('dialog[open] [data-testid=confirm]')
  await caller.next('call.ended')
  await page.waitForSelector('[data-testid=summary]:has-text("backend ended the call")')
  await page.click('summary')
  expect(JSON.parse((await page.locator('[data-testid=raw]').textContent()) ?? '').call.call_uuid).toBe(callUuid)
  expect(operator.faults).toEqual([])
  await Promise.all([caller.close(), callee.close(), page.close()])
}, 240_000)

test('[ADM2] [XFER1] an answered call is transferred, and the page says why it could not be', async () => {
  const { browser, service } = stage
  const { ann, eva, ids, first } = await threeOf(service)
  const operator = await signIn(browser, service)
  const { page } = operator
  await operator.go(`calls/shop/${first}`)
  await page.click('[data-testid=transfer-call]')
  const confirm = 'dialog[open] [data-testid=confirm]'
  expect(await page.isDisabled(confirm)).toBe(true)
  await page.fill('dialog[open] [data-testid=to-name]', ids.ben)
  await page.click(confirm)
  const why = `Both sides would be "${ids.ben}" (agent).`
  await page.waitForSelector(`dialog[open] [role=alert]:has-text(${JSON.stringify(why)})`)
  expect(await operator.look('transfer')).toEqual([])
  await page.fill('dialog[open] [data-testid=to-name]', ids.eva)
  await page.click(confirm)
  const { data } = await eva.next('call.ringing')
  expect(data).toMatchObject({ caller_user_id: ids.ann, transferred_from: first })
  await eva.request('call.accept', { call_uuid: data.call_uuid })
  await ann.next('call.ended')
  await page.waitForSelector('.badge:has-text("ended")')
  // A refused request is no fault of the page.
  expect(operator.faults.filter((fault) => !/400/.test(fault))).toEqual([])
  await page.close()
}, 240_000)

test('[ADM2] somebody is shown, sent away and erased; the audit log says who did it', async () => {
  const { browser, service } = stage
  const pair = await connectPair(service)
  const callUuid = await acceptedCall(pair)
  const operator = await signIn(browser, service)
  const { page } = operator
  await operator.go(`calls/shop/${callUuid}`)
  await page.click(`a:has-text("agent/${pair.calleeId}")`)
  await page.waitForSelector('[data-testid=sessions]:has-text("online")')
  await page.waitForSelector(`[data-call="${callUuid}"]`)
  expect(await operator.look('person')).toEqual([])
  await page.click('[data-testid=disconnect]')
  await page.click('dialog[open] [data-testid=confirm]')
  expect((await pair.callee.closed).code).toBe(4403)
  await page.waitForSelector('[data-testid=sessions]:has-text("offline")')
  await page.click('[data-testid=erase]')
  expect(await operator.look('erase')).toEqual([])
  expect(await page.isDisabled('dialog[open] [data-testid=confirm]')).toBe(true)
  await page.fill('dialog[open] [data-testid=typed]', pair.calleeId)
  await page.click('dialog[open] [data-testid=confirm]')
  await page.waitForSelector('[data-testid=done]:has-text("It is erased: of 1 call")')
  await page.keyboard.press('3')
  await page.waitForSelector('h1:text-is("People")')
  expect(await operator.look('people')).toEqual([])
  await page.keyboard.press('5')
  await page.waitForSelector('[data-testid=audit] tbody tr')
  const rows = await page.locator('[data-testid=audit] tbody tr').allTextContents()
  expect(rows[0]).toContain('Olga')
  expect(rows.slice(0, 2).map((row) => /participant\.(?:erase|disconnect)/.exec(row)?.[0])).toEqual([
    'participant.erase',
    'participant.disconnect',
  ])
  expect(rows.join()).not.toContain(pair.calleeId)
  expect(await operator.look('audit')).toEqual([])
  expect(operator.faults).toEqual([])
  await Promise.all([pair.caller.close(), page.close()])
}, 240_000)

test('[ADM2] products with their settings, keys, groups and endpoints; the settings of the node', async () => {
  const { browser, service } = stage
  const operator = await signIn(browser, service)
  const { page } = operator
  await page.keyboard.press('4')
  await page.selectOption('[data-testid=busy]', 'reject')
  await page.waitForFunction(async () => {
    const answer = await (await fetch('api/products/shop/product')).json()
    return answer.busy === 'reject'
  })
  await page.click('[data-testid=new-key]')
  await page.click('dialog[open] [data-testid=confirm]')
  await page.waitForSelector('[data-testid=secret]')
  await page.waitForFunction(() => document.querySelectorAll('[data-testid=keys] li').length === 2)
  const put = { method: 'PUT', headers: { 'X-Ringwire-Admin': '1' } }
  await page.evaluate(
    ([put, body]) => fetch('api/products/shop/groups/agent/support', { ...put, body } as RequestInit),
    [put, JSON.stringify({ members: ['ben', 'eve'], strategy: 'in_turn' })] as const,
  )
  await page.fill('[data-testid=webhooks] input', 'https://example.com/hook')
  await page.click('[data-testid=webhooks] form button')
  await page.waitForSelector('[data-testid=webhooks] li:has-text("https://example.com/hook")')
  await page.reload()
  await page.waitForSelector('[data-testid=groups] li:has-text("agent/support")')
  await page.click('[data-testid=webhooks] li button:has-text("Deliveries")')
  await page.waitForSelector('text=Nothing was sent yet.')
  expect(await operator.look('products')).toEqual([])
  await page.keyboard.press('6')
  await page.waitForSelector('[data-testid=settings] tr:has-text("RINGWIRE_ADMIN_TOKEN"):has-text("not shown")')
  expect(await page.content()).not.toContain(token)
  expect(await operator.look('settings')).toEqual([])
  expect(operator.faults).toEqual([])
  await page.close()
}, 240_000)
