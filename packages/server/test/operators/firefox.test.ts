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
