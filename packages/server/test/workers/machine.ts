import { afterAll, beforeAll } from 'bun:test'
import type { Client } from '@ringwire/testkit/client'
import { ExtendedClient } from '@ringwire/testkit/extended-client'
import { Service } from '@ringwire/testkit/service'
import { SharedStores } from '../support/stores.ts'
import { nodeOf } from '../support/workers.ts'

/** How many workers a machine has, where a test does not say it. */
export const count = 3
export const nodes = ['m-1', 'm-2', 'm-3']

/** Machines of the tests of a file, on stores only for this file. */
export interface Machines {
  stores(): SharedStores
  /** One machine that serves with several processes on one port. */
  startWorkers(env?: Record<string, string>): Promise<Service>
}

export function machinesFor(): Machines {
  let stores: SharedStores
  beforeAll(async () => {
    stores = await SharedStores.start()
  })
  afterAll(() => stores?.dispose())
  return {
    stores: () => stores,
    async startWorkers(env = {}) {
      const settings = { ...(await stores.next()), RINGWIRE_NODE_ID: 'm', RINGWIRE_WORKERS: String(count), ...env }
      const service = new Service(settings)
      try {
        return await service.start()
      } catch (error) {
        await service.dispose()
        throw error
      }
    },
  }
}

export const nodeOfSession = (service: Service, id: string) => nodeOf(service.env.REDIS_URL ?? '', id)
export const linesOf = (service: Service) =>
  service.log
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))

/** Connects until the socket is on this worker: which one takes a connection is the kernel's choice. */
async function on<C extends Client | ExtendedClient>(
  node: string,
  service: Service,
  connect: () => Promise<C>,
  idOf: (client: C) => string,
): Promise<C> {
  for (let tries = 0; tries < 200; tries++) {
    const client = await connect()
    if ((await nodeOfSession(service, idOf(client))) === node) return client
    await (client instanceof ExtendedClient ? client.leave() : client.close())
  }
  throw new Error(`no connection came to ${node}`)
}

export function baseOn(node: string, service: Service, userId: string, role: string): Promise<Client> {
  const connect = () => service.connect({ user_id: userId, role })
  return on(node, service, connect, (client) => client.all[0]?.data.socket_id)
}

export async function extendedOn(
  node: string,
  service: Service,
  userId: string,
  role: string,
): Promise<ExtendedClient> {
  const token = await service.token({ user_id: userId, role })
  const connect = async () => {
    const client = new ExtendedClient({ userId, url: service.url, token, persistent: true })
    await client.connect()
    return client
  }
  return on(node, service, connect, (client) => client.hello?.data.session_id)
}
