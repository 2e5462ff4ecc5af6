import { test } from 'bun:test'
import { openDoomedBrowser } from '@ringwire/testkit/browser'
import { soon } from '@ringwire/testkit/patience'
import { goOnline } from './support/participant.ts'
import { withServiceAndBrowser } from './support/stage.ts'

const stage = withServiceAndBrowser()

test('nobody is listed 10 s after the browser was killed', async () => {
  const doomed = await openDoomedBrowser()
  const [customer, agent] = await Promise.all([
    goOnline(stage.browser, stage.service.url, { role: 'customer' }),
    goOnline(doomed.browser, stage.service.url, { role: 'agent' }),
  ])
  const row = customer.page.locator(`[data-testid=person][data-user="${agent.userId}"]`)
  await row.waitFor()
  await doomed.kill()
  await row.waitFor({ state: 'detached', timeout: soon(10_000) })
  await customer.close()
}, 240_000)
