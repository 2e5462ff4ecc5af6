import { afterAll, beforeAll, expect, test } from 'bun:test'
import { openBrowser } from '@ringwire/testkit/browser'
import { startTurnServer, type TurnServer } from '@ringwire/testkit/turn'
import type { Browser } from 'playwright-core'
import { expectFlow, measureFlow, selectedPair } from './support/flow.ts'
import { connect, goOnlineTogether, type Participant } from './support/participant.ts'
import { DemoService } from './support/service.ts'

let turn: TurnServer
let service: DemoService
let browser: Browser

beforeAll(async () => {
  turn = await startTurnServer()
  const settings = { RINGWIRE_TURN_URLS: turn.url, RINGWIRE_TURN_SECRET: turn.secret }
  ;[service, browser] = await Promise.all([new DemoService(settings).start(), openBrowser()])
}, 240_000)

afterAll(async () => {
  await browser?.close()
  await service?.dispose()
  await turn?.stop()
})

async function expectSteadyMedia(people: Participant[]): Promise<void> {
  const kinds = ['audio', 'video'] as const
  const flows = await Promise.all(people.map(({ page }) => measureFlow(page, 5, kinds)))
  for (const flow of flows) {
    expect(flow.length).toBeGreaterThanOrEqual(5)
    expectFlow(flow, kinds)
  }
}

test('[REL1] two browsers hear and see each other, directly', async () => {
  const { customer, agent, close } = await goOnlineTogether(browser, service.url)
  await connect(customer, agent, 'video')
  await expectSteadyMedia([customer, agent])
  for (const { page } of [customer, agent]) {
    const { local, remote } = await selectedPair(page)
    expect(['host', 'prflx']).toContain(local)
    expect(['host', 'prflx']).toContain(remote)
  }
  await close()
}, 240_000)

test('[ICE1] relay only: coturn carries the call with the credentials of the token response', async () => {
  const { customer, agent, close } = await goOnlineTogether(browser, service.url, { query: '?relay=1' })
  await connect(agent, customer, 'video')
  await expectSteadyMedia([customer, agent])
  for (const { page, tokens } of [customer, agent]) {
    expect((await selectedPair(page)).local).toBe('relay')
    await page.waitForSelector('[data-testid=call-path]:has-text("Relayed")')
    const username = tokens[0]?.ice_servers.find((server) => server.username)?.username
    expect(username).toMatch(/^\d+:/)
    await turn.said(new RegExp(`user <${username}>: incoming packet ALLOCATE processed, success`))
    await turn.said(new RegExp(`user <${username}>: incoming packet CHANNEL_BIND processed, success`))
  }
  await close()
}, 240_000)
