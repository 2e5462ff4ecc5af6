import { test } from 'bun:test'
import { openDoomedBrowser } from '@ringwire/testkit/browser'
import { soon } from '@ringwire/testkit/patience'
import { goOnline } from './support/participant.ts'
import { withServiceAndBrowser } from './support/stage.ts'

const stage = withServiceAndBrowser()

test('[PRES1] nobody counts as online 10 s after the browser was killed', async () => {
  const doomed = await openDoomedBrowser()
  const [customer, agent] = await Promise.all([
    goOnline(stage.browser, stage.service.url, { role: 'customer' }),
    goOnline(doomed.browser, stage.service.url, { role: 'agent' }),
  ])
  const row = customer.page.locator(`[data-testid=person][data-user="${agent.userId}"]`)
  const is = (presence: string) => row.and(customer.page.locator(`[data-presence=${presence}]`))
  await is('online').waitFor()
  await doomed.kill()
  await is('offline').waitFor({ timeout: soon(10_000) })
  await customer.close()
}, 240_000)
