import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Firefox, openFirefox } from '@ringwire/testkit/firefox'
import { acceptedCall, connectPair } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import { adminUrlOf, startObserved } from '../admin/observed.ts'
import { finish } from '../scenarios/calls/composition.ts'
import { token } from './operator.ts'

const stage = {} as { service: Service; firefox: Firefox }
beforeAll(async () => {
  const [service, firefox] = await Promise.all([startObserved({ RINGWIRE_ADMIN_TOKEN: token }), openFirefox()])
  Object.assign(stage, { service, firefox })
}, 240_000)
afterAll(async () => {
  await stage.firefox?.close()
  if (stage.service) await finish(stage.service)
})

test('[ADM2] Firefox: sign in, Now, a call with its picture, its end, sign out', async () => {
  const { service, firefox } = stage
  const pair = await connectPair(service)
  const callUuid = await acceptedCall(pair)
  const page = await firefox.browser.newPage()
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(String(error)))
  // A locator waits for its element, which `page.click` does not.
  const click = (selector: string) => page.locator(selector).click()
  await page.goto(`${await adminUrlOf(service)}/admin/`)
  await page.locator('[data-testid=token]').fill(token)
  await page.locator('[data-testid=name]').fill('Fox')
  await click('[data-testid=enter]')
  await page.waitForSelector('[data-testid=health]')
  await page.waitForSelector('[data-testid="chart-Connections"] .line')
  await page.keyboard.press('2')
  await click(`[data-call="${callUuid}"] a.mono`)
  await page.waitForSelector('[data-testid=timeline] .dot')
  await click('[data-testid=end-call]')
  await click('dialog[open] [data-testid=confirm]')
  await pair.caller.next('call.ended')
  await click('[data-testid=leave]')
  await page.waitForSelector('[data-testid=token]')
  expect(faults).toEqual([])
  await Promise.all([pair.caller.close(), pair.callee.close()])
}, 240_000)

test('[ADM2] [GROUP1] Firefox: a group whose members are scripts is made, changed and removed', async () => {
  const { service, firefox } = stage
  const page = await firefox.browser.newPage()
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(String(error)))
  page.on('dialog', (dialog) => faults.push(dialog.message()))
  await page.goto(`${await adminUrlOf(service)}/admin/#/products/shop`)
  await page.type('[data-testid=token]', token)
  await page.click('[data-testid=enter]')
  await page.waitForSelector('[data-testid=new-group]')
  await page.click('[data-testid=new-group]')
  await page.type('dialog[open] [data-testid=group-role]', 'agent')
  await page.type('dialog[open] [data-testid=group-group]', '<img src=x onerror=alert(1)>')
  await page.type('dialog[open] [data-testid=group-members]', '<script>alert(2)</script>')
  await page.click('dialog[open] [data-testid=confirm]')
  const says = (text: string) =>
    page.waitForFunction(
      (text) => document.querySelector('[data-testid=groups]')?.textContent?.includes(text),
      {},
      text,
    )
  await says('agent/<img src=x onerror=alert(1)> 1 member,')
  await page.click('[data-testid=edit-group]')
  await page.waitForSelector('dialog[open] [data-testid=group-members]')
  await page.type('dialog[open] [data-testid=group-members]', '\nben\n')
  await page.click('dialog[open] [data-testid=confirm]')
  await says('agent/<img src=x onerror=alert(1)> 2 members,')
  await page.click('[data-testid=groups] li button.danger')
  await page.click('dialog[open] [data-testid=confirm]')
  await says('There is none.')
  expect(faults).toEqual([])
  await page.close()
}, 240_000)
