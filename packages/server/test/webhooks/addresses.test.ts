import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Server } from 'node:net'
import type { DeliveryPage, WebhookDelivery } from '@ringwire/protocol/backend'
import { until } from '@ringwire/testkit/patience'
import { program } from '@ringwire/testkit/program'
import { productKey, Service } from '@ringwire/testkit/service'
import { noConnection } from '../../src/outgoing/post.ts'

/** A whole service, and where its webhooks must not lead it [HOOK4]. */

const closed: Service = new Service()
const open: Service = new Service({ RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1' })
const servers: Server[] = []
beforeAll(async () => {
  await closed.start()
  await open.start()
})
afterAll(async () => {
  for (const server of servers) server.close()
  await Promise.all([closed.dispose(), open.dispose()])
})

async function listen(server: Server, host = '127.0.0.1', port = 0): Promise<number> {
  servers.push(server)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  return (server.address() as AddressInfo).port
}

/** Something inside, at each address of `localhost`: nobody may as much as connect. */
async function openInside() {
  let connections = 0
  const counting = () =>
    createServer((socket) => {
      connections++
      socket.destroy()
    })
  const port = await listen(counting())
  // Not every machine has it.
  await listen(counting(), '::1', port).catch(() => {})
  return { port, connections: () => connections }
}

async function ask<T>(service: Service, method: string, below: string, body?: object): Promise<T> {
  const response = await fetch(`${service.url}/v1/server/webhooks${below}`, {
    method,
    headers: { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret },
    ...(body && { body: JSON.stringify(body) }),
  })
  expect(response.ok).toBe(true)
  return response.json()
}

/** What became of the first attempt of a `webhook.test`. */
async function attempted(service: Service, id: string): Promise<WebhookDelivery> {
  const { delivery_id } = await ask<{ delivery_id: string }>(service, 'POST', `/${id}/test`, {})
  let found: WebhookDelivery | undefined
  await until('it was attempted', async () => {
    const { data } = await ask<DeliveryPage>(service, 'GET', `/${id}/deliveries`)
    found = data.find((one) => one.id === delivery_id && one.attempts > 0)
    return found !== undefined
  })
  return found as WebhookDelivery
}

/** On the command line, whose own settings allow the machine itself. */
async function createBeside(service: Service, url: string): Promise<string> {
  const child = Bun.spawn([...program, 'webhooks', 'create', url, '--product', 'shop', '--json'], {
    env: { PATH: process.env.PATH ?? '', RINGWIRE_DATA_DIR: service.dataDir, RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1' },
    stdout: 'pipe',
    stderr: 'inherit',
  })
  return JSON.parse(await new Response(child.stdout).text()).id
}

test('[HOOK4] a name or an address of the machine itself is never connected to', async () => {
  const inside = await openInside()
  const named = await ask<{ id: string }>(closed, 'POST', '', { url: `https://localhost:${inside.port}/` })
  const ids = [named.id, await createBeside(closed, `http://127.0.0.1:${inside.port}/`)]
  // A running service knows an endpoint within a second.
  for (const id of ids) {
    const refused = { response_status: null, response: noConnection }
    expect(await attempted(closed, id)).toMatchObject(refused)
  }
  expect(inside.connections()).toBe(0)
}, 240_000)

test('[HOOK4] an address that is allowed leads to no other one: no redirect is followed', async () => {
  const inside = await openInside()
  const front = createHttpServer((request, response) => {
    request.resume()
    response.writeHead(Number(request.url?.slice(1)), { Location: `http://127.0.0.1:${inside.port}/` }).end()
  })
  const port = await listen(front)
  for (const status of [301, 302, 303, 307, 308]) {
    const { id } = await ask<{ id: string }>(open, 'POST', '', { url: `http://127.0.0.1:${port}/${status}` })
    expect((await attempted(open, id)).response_status).toBe(status)
  }
  expect(inside.connections()).toBe(0)
}, 240_000)
