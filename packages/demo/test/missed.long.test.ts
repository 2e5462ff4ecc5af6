import { test } from 'bun:test'
import { goOnlineTogether } from './support/participant.ts'
import { withServiceAndBrowser } from './support/stage.ts'

const stage = withServiceAndBrowser({ RINGWIRE_RING_TIMEOUT_MS: '4000', RINGWIRE_TOKEN_TTL_S: '12' })

test('[RING1] nobody answers: both are told, and the callee finds a missed call', async () => {
  const { customer, agent, close } = await goOnlineTogether(stage.browser, stage.service.url)
  await customer.call(agent, 'audio')
  await agent.incoming()
  await Promise.all([customer.note('did not answer'), agent.note('You missed a call')])
  await Promise.all([customer.phase('idle'), agent.phase('idle')])
  await agent.page.waitForSelector('[data-testid=record][data-kind=missed][data-status=missed]')
  await customer.page.waitForSelector('[data-testid=record][data-kind=outgoing][data-status=missed]')
  await close()
}, 240_000)

test('[WS5] the page renews its token before it expires and can still call afterwards', async () => {
  const { customer, agent, close } = await goOnlineTogether(stage.browser, stage.service.url)
  await customer.page.waitForSelector('[data-testid=log-list] > [data-event="auth.refreshed"]')
  const renewed = [...new Set(customer.tokens.map(({ token }) => token))]
  if (renewed.length < 2) throw new Error('The socket went on with the same token.')
  await agent.call(customer, 'audio')
  await customer.incoming()
  await customer.click('accept')
  await agent.phase('live')
  await close()
}, 240_000)
