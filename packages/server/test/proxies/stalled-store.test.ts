import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { request } from 'node:https'
import type { Service } from '@ringwire/testkit/service'
import { Deployment, person } from './deployment.ts'
import { proxyFiles } from './proxy.ts'

/** After this number of late answers a proxy that believes each of them has taken the node out. */
const lateAnswers = 6

for (const name of ['nginx', 'haproxy'] as const) {
  describe(`a store that stands still, behind ${name} with deploy/${proxyFiles[name]}`, () => {
    let deployment: Deployment

    beforeAll(async () => {
      deployment = await Deployment.start({ proxy: name })
    })
    afterAll(() => deployment?.dispose())

    /** The status of an upgrade through the proxy, as an application sees it that sends no Origin. */
    function upgradeStatus(token: string): Promise<number> {
      const { promise, resolve, reject } = Promise.withResolvers<number>()
      const headers = {
        Authorization: `Bearer ${token}`,
        Connection: 'Upgrade',
        Upgrade: 'websocket',
        'Sec-WebSocket-Version': '13',
        'Sec-WebSocket-Key': randomBytes(16).toString('base64'),
      }
      const asked = request(`${deployment.url}/v1/ws`, { headers, agent: false, rejectUnauthorized: false })
      asked.on('upgrade', (response, socket) => {
        socket.destroy()
        resolve(response.statusCode ?? 0)
      })
      asked.on('response', (response) => {
        response.resume()
        resolve(response.statusCode ?? 0)
      })
      asked.on('error', reject)
      asked.end()
      return promise
    }

    /** Resolves when the node has said so often that the store does not answer. */
    async function saysNotReady(node: Service): Promise<void> {
      for (let late = 0; late < lateAnswers; ) {
        const { status } = await fetch(`${node.url}/readyz`, { keepalive: false })
        if (status === 503) late++
        // Each answer is good for a second.
        await Bun.sleep(1_000)
      }
    }

    test('no upgrade gets 503 because /readyz is late, also when no node is ready any more', async () => {
      // Each participant may open a bounded number of sockets.
      const tokens = await Promise.all(
        Array.from({ length: 40 }, async (_, n) => (await deployment.issue(person(`ann-${n}`, 'customer'))).token),
      )
      let isOver = false
      const statuses: number[] = []
      deployment.redisProxy.stall()
      try {
        const over = Promise.all(deployment.nodes.map(saysNotReady)).then(() => {
          isOver = true
        })
        for (let n = 0; !isOver || n < tokens.length; n++) {
          statuses.push(await upgradeStatus(tokens[n % tokens.length] ?? ''))
          // A participant's own limit is of no interest here.
          await Bun.sleep(isOver ? 0 : 200)
        }
        await over
      } finally {
        deployment.redisProxy.mend()
      }
      expect(statuses.length).toBeGreaterThanOrEqual(tokens.length)
      expect(statuses.filter((status) => status !== 101)).toEqual([])
      await deployment.answers(200)
    }, 240_000)
  })
}
