import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { openBrowser } from '@ringwire/testkit/browser'
import { Service } from '@ringwire/testkit/service'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import type { Browser } from 'playwright-core'
import { SharedStores } from '../../server/test/support/stores.ts'
import { goOnline, type Participant } from './support/participant.ts'
import { DemoService } from './support/service.ts'

/** The list of people: who is there, and who is in a call, as it happens. */

interface Place {
  /** Where the page is. */
  readonly url: string
  /** The nodes that sockets were led to, in order. */
  readonly led: readonly string[]
  end(): Promise<void>
}

async function oneNode(): Promise<Place> {
  const service = await new DemoService().start()
  return { url: service.url, led: [service.url], end: () => service.dispose() }
}

/** The page comes from the one, and each socket goes to the other one than the last. */
async function twoNodes(): Promise<Place> {
  const stores = await SharedStores.start()
  const led: string[] = []
  const lead = () => {
    led.push(led.at(-1) === one.url ? two.url : one.url)
    return led.at(-1) as string
  }
  const network = await new TcpProxy(lead).start()
  const env = { ...(await stores.next()), RINGWIRE_PUBLIC_URL: network.url }
  const one = new DemoService({ ...env, RINGWIRE_NODE_ID: 'one' })
  const two = new Service({ ...env, RINGWIRE_NODE_ID: 'two' })
  await one.start()
  await two.start()
  return {
    url: one.url,
    led,
    async end() {
      await Promise.all([one.dispose(), two.dispose()])
      await Promise.all([network.stop(), stores.dispose()])
    },
  }
}

for (const [name, open, nodes] of [
  ['one node', oneNode, 1],
  ['two nodes', twoNodes, 2],
] as const) {
  describe(`people on ${name}`, () => {
    let place: Place
    let browser: Browser
    beforeAll(async () => {
      ;[place, browser] = await Promise.all([open(), openBrowser()])
    }, 240_000)
    afterAll(async () => {
      await browser?.close()
      await place?.end()
    })

    const sees = (watcher: Participant, person: Participant, state: string, text: string) =>
      watcher.page.waitForSelector(
        `[data-testid=person][data-user="${person.userId}"]${state} .person-about:text-matches("^${text}$")`,
      )

    test('[PRES1] who comes, calls, answers, hangs up and goes is seen by who looks on', async () => {
      const onlooker = await goOnline(browser, place.url, { role: 'customer' })
      const agent = await goOnline(browser, place.url, { role: 'agent' })
      const caller = await goOnline(browser, place.url, { role: 'customer' })
      const [isThere, isCalling, isGone] = [
        '[data-presence=online]:not([data-in-call])',
        '[data-presence=online][data-in-call]',
        '[data-presence=offline]:not([data-in-call])',
      ]
      await sees(onlooker, agent, isThere, 'agent · online')
      await sees(agent, caller, isThere, 'customer · online')
      expect(new Set(place.led).size).toBe(nodes)

      // A caller is in a call, a callee that rings is not yet.
      await caller.call(agent, 'audio')
      await agent.incoming()
      await sees(agent, caller, isCalling, 'customer · in a call')
      await sees(onlooker, agent, isThere, 'agent · online')
      await agent.click('accept')
      await sees(onlooker, agent, isCalling, 'agent · in a call')
      await agent.click('hangup')
      await sees(onlooker, agent, isThere, 'agent · online')
      await sees(agent, caller, isThere, 'customer · online')

      await agent.close()
      await sees(onlooker, agent, isGone, 'agent · offline')
      await onlooker.page.waitForSelector('text=Nobody is online right now.')
      await Promise.all([onlooker.close(), caller.close()])
      for (const { errors } of [onlooker, agent, caller]) expect(errors).toEqual([])
    }, 240_000)
  })
}
