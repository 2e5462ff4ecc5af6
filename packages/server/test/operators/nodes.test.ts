import { afterAll, beforeAll, expect, test } from 'bun:test'
import { openBrowser } from '@ringwire/testkit/browser'
import { someone } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import type { Browser } from 'playwright-core'
import { adminUrlOf, startObserved } from '../admin/observed.ts'
import { createBox } from '../cli/command.ts'
import { SharedStores } from '../support/stores.ts'
import { signIn, token } from './operator.ts'

const names = ['left', 'right']
const box = createBox()
let stores: SharedStores
let browser: Browser
const nodes: Service[] = []
beforeAll(async () => {
  stores = await SharedStores.start()
  const settings = { ...(await stores.next()), RINGWIRE_ADMIN_TOKEN: token, RINGWIRE_DRAIN_MS: '0' }
  const start = (RINGWIRE_NODE_ID: string) => startObserved({ ...settings, RINGWIRE_NODE_ID })
  for (const name of names) nodes.push(await start(name))
  browser = await openBrowser()
}, 240_000)
afterAll(async () => {
  await Promise.all([browser?.close(), box.clean()])
  for (const node of nodes) {
    expect(await node.terminate()).toBe(0)
    await node.dispose()
  }
  await stores?.dispose()
})

test('[ADM2] Now says which node its figures are of, in the page and in a terminal', async () => {
  const [left, right] = nodes as [Service, Service]
  const client = await right.connect({ user_id: someone('agent'), role: 'agent' })
  for (const [name, node, sockets] of [
    ['left', left, 0],
    ['right', right, 1],
  ] as const) {
    const operator = await signIn(browser, node)
    const { page } = operator
    const said = `Charts and calls are those of ${name} only, not of 1 other node. Each node has its own page.`
    await page.waitForSelector(`[data-testid=figures-of]:text-is("${said}")`)
    await page.waitForSelector(`[data-testid=chart-Connections] strong:has-text("${sockets}")`)
    expect(await operator.look(`now-of-${name}`)).toEqual([])
    expect(operator.faults).toEqual([])
    await page.close()
    const env = { RINGWIRE_ADMIN_TOKEN: token }
    const { out } = await box.run(`overview --url ${await adminUrlOf(node)}`, { env })
    expect(out).toMatch(new RegExp(`Nodes +2\\nFigures of +${name}\\nSockets +${sockets}\\n`))
  }
  await client.close()
}, 240_000)
