import { afterAll, afterEach, beforeAll } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import { Service } from '@ringwire/testkit/service'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import type { RingwireErrorShape, SessionStorage } from '../../src/types.ts'
import { online, type Person, type PersonOptions, person } from './people.ts'

/** A service of a test file, a network before it that can fail, and the people of one test. */
export interface Stage {
  readonly service: Service
  readonly network: TcpProxy
  add(userId: string, role: Person['role'], options?: PersonOptions): Person
  /** They are closed after the test. */
  keep(...people: Person[]): void
  /** The caller is directly connected, the callee through the network. */
  two(options?: PersonOptions): Promise<{ caller: Person; callee: Person }>
}

export function createStage(): Stage {
  let service: Service
  let network: TcpProxy
  let everybody: Person[] = []

  beforeAll(async () => {
    service = await new Service().start()
    network = await new TcpProxy(() => service.url).start()
  })
  afterEach(() => {
    for (const { client } of everybody) client.close()
    everybody = []
    network.mend()
  })
  afterAll(async () => {
    await network.stop()
    await service.dispose()
  })

  const stage: Stage = {
    get service() {
      return service
    },
    get network() {
      return network
    },
    add(userId, role, options) {
      const it = person(service, userId, role, options)
      everybody.push(it)
      return it
    },
    keep: (...people) => void everybody.push(...people),
    async two(options) {
      const caller = stage.add(someone('caller'), 'customer')
      const callee = stage.add(someone('callee'), 'agent', { url: network.wsUrl, ...options })
      await Promise.all([online(caller), online(callee)])
      return { caller, callee }
    },
  }
  return stage
}

export async function failure(promise: Promise<unknown>): Promise<RingwireErrorShape> {
  return promise.then(
    () => Promise.reject(new Error('it did not fail')),
    (error) => error,
  )
}

/** A storage as a page has it, that a test can look into. */
export function memory(): SessionStorage & { readonly items: Map<string, string> } {
  const items = new Map<string, string>()
  return {
    items,
    getItem: (key) => items.get(key) ?? null,
    setItem: (key, value) => void items.set(key, value),
    removeItem: (key) => void items.delete(key),
  }
}

export const candidate = (name: string) => ({ candidate: name, sdpMid: '0', sdpMLineIndex: 0 })
