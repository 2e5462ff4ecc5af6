import { expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import type { Page } from 'playwright-core'
import { measureFlow } from './support/flow.ts'
import { connect, goOnlineTogether, openEntries } from './support/participant.ts'
import { withServiceAndBrowser } from './support/stage.ts'

const stage = withServiceAndBrowser()
const together = () => goOnlineTogether(stage.browser, stage.service.url)

const authOk = '[data-event="auth.ok"]'
const logged = (page: Page, selector: string) =>
  page.waitForSelector(`[data-testid=log-list] > ${selector}`, { state: 'attached' })

type TakenSocket = {
  toPage(message: string): void
  /** The page sees the code; to the service the client has closed its socket. */
  drop(code: number): void
}

type Interference = {
  /** Keeps a message of the page from the service by saying true. */
  takes?: (message: string, socket: TakenSocket) => boolean
  /** While true, every new socket is closed at once. */
  isDown?: () => boolean
}

/** Puts the test between the page and the service; gives the sockets that the page opens. */
async function takeSockets(page: Page, { takes, isDown }: Interference = {}): Promise<TakenSocket[]> {
  const sockets: TakenSocket[] = []
  await page.routeWebSocket(/\/v1\/ws/, (route) => {
    if (isDown?.()) {
      void route.close({ code: 1012 })
      return
    }
    const service = route.connectToServer()
    const socket: TakenSocket = {
      toPage: (message) => route.send(message),
      drop(code) {
        void route.close({ code })
        void service.close({ code: 3000 })
      },
    }
    sockets.push(socket)
    route.onMessage((message) => {
      if (!takes?.(String(message), socket)) service.send(message)
    })
  })
  await page.reload()
  await logged(page, authOk)
  return sockets
}

test('[CLOSE] 4401: a new token and a new socket; 4409: no socket any more', async () => {
  const { customer, close } = await together()
  const { page, tokens } = customer
  const sockets = await takeSockets(page)
  // A page has its token before this process has read it, too.
  await until('the page that was loaded again has its token', () => tokens.length === 2)
  sockets.at(-1)?.drop(4401)
  await logged(page, `${authOk} ~ ${authOk}`)
  await until('it has got another one', () => tokens.length === 3)
  sockets.at(-1)?.drop(4409)
  await page.waitForSelector('[data-testid=connection][data-state=stopped]')
  // Not even when the network comes back: no token is asked for before this answer is there.
  let asked = 0
  page.on('request', (request) => {
    if (request.url().endsWith('/demo/api/token')) asked++
  })
  await page.evaluate(async () => {
    dispatchEvent(new Event('online'))
    await fetch('/healthz')
  })
  expect([sockets.length, asked]).toEqual([2, 0])
  expect(await page.getAttribute('[data-testid=connection]', 'data-state')).toBe('stopped')
  await close()
}, 240_000)

test('[INV3] an invite that was lost with its socket is sent again and rings once', async () => {
  const { customer, agent, close } = await together()
  let lost = ''
  const takes: Interference['takes'] = (message, socket) => {
    if (lost || !message.includes('"call.invite"')) return false
    lost = JSON.parse(message).data.call_uuid
    socket.drop(1012)
    return true
  }
  await takeSockets(customer.page, { takes })
  await customer.call(agent, 'audio')
  await agent.incoming()
  await agent.click('accept')
  await Promise.all([customer.phase('live'), agent.phase('live')])
  // What rang is in the log before what came later.
  await logged(agent.page, '[data-event="webrtc.offer"][data-direction=received]')
  expect(await agent.page.locator('[data-event="call.ringing"]').count()).toBe(1)
  expect(await agent.page.getAttribute('[data-testid=stage]', 'data-call')).toBe(lost)
  await close()
}, 240_000)

test('[END1] hanging up while the socket is down ends the call as soon as it is back', async () => {
  const { customer, agent, close } = await together()
  let down = false
  const sockets = await takeSockets(customer.page, { isDown: () => down })
  await customer.call(agent, 'audio')
  await agent.incoming()
  down = true
  sockets.at(-1)?.drop(1012)
  await customer.page.waitForSelector('[data-testid=connection]:not([data-state=online])')
  await customer.click('hangup')
  await customer.phase('idle')
  down = false
  await agent.note('cancelled the call')
  await close()
}, 240_000)

test('[PLACE5] both reload, and the offer of the first comes before the second is back: they find each other', async () => {
  const { customer, agent, close } = await together()
  await connect(customer, agent, 'audio')
  await measureFlow(customer.page, 3)
  const gate = Promise.withResolvers<void>()
  await agent.page.routeWebSocket(/\/v1\/ws/, async (route) => {
    await gate.promise
    route.connectToServer()
  })
  await Promise.all([customer.page.reload(), agent.page.reload()])
  await logged(customer.page, '[data-event="webrtc.offer"][data-direction=sent]')
  gate.resolve()
  await Promise.all([customer.phase('live'), agent.phase('live')])
  const [window] = await measureFlow(agent.page, 1, ['audio'])
  expect(window?.audio).toBeGreaterThan(0)
  await close()
}, 240_000)

test('[LOG1] the log hides even a token that came in an envelope', async () => {
  const { customer, close } = await together()
  const { page, tokens } = customer
  const sockets = await takeSockets(page)
  const token = tokens.at(-1)?.token ?? 'none'
  sockets.at(-1)?.toPage(JSON.stringify({ event: 'test.leak', data: { deep: [`Bearer ${token}`] } }))
  await logged(page, '[data-event="test.leak"]')
  await openEntries(page)
  const log = await page.textContent('[data-testid=log-list]')
  expect(log).toContain('Bearer (token)')
  expect(log).not.toContain(token)
  await close()
}, 240_000)
