/** The SDK as a client under `ringwire conformance`, which knows nothing of it but its wire. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { problemsOf, runKit, verdictsOf } from '@ringwire/testkit/conformance'
import { Service } from '@ringwire/testkit/service'
import { createCallClient } from '../src/ringwire.ts'
import { createTransfers, transferCapabilities } from '../src/transfer.ts'
import type { Call, CallClient } from '../src/types.ts'

const service = new Service()
beforeAll(() => service.start(), 60_000)
afterAll(() => service.dispose())

const sdp = 'v=0\r\n'

/** A phone without media: its offers and answers say nothing. */
class Phone {
  private readonly client: CallClient
  private readonly peer: { readonly user_id: string; readonly role: string }
  private call: Call | undefined

  constructor(sessionUrl: string, peer: Phone['peer']) {
    this.peer = peer
    this.client = createCallClient({ getToken: () => fetch(sessionUrl), can: transferCapabilities })
    this.client.on('incoming', (call) => this.take(call))
    createTransfers(this.client).on('moved', ({ call }) => {
      this.take(call)
      void call.sendOffer({ type: 'offer', sdp })
    })
  }

  private take(call: Call): void {
    this.call = call
    call.on('offer', () => void call.sendAnswer({ type: 'answer', sdp }))
    call.on('state', ({ name }) => {
      if (name === 'accepted' && call.direction === 'outgoing') void call.sendOffer({ type: 'offer', sdp })
    })
  }

  do(action: string): void {
    const { client, call, peer } = this
    if (action === 'connect') client.connect()
    else if (action === 'call') this.take(client.call({ userId: peer.user_id, role: peer.role }))
    else if (action === 'answer') void call?.accept()
    else if (action === 'decline') void call?.reject()
    else if (action === 'cancel') void call?.cancel()
    else if (action === 'hang_up') void call?.end()
    else if (action === 'disconnect') client.close()
  }

  stop(): void {
    this.client.close()
  }
}

test('the SDK keeps every rule that the kit looks at', async () => {
  let phone: Phone | undefined
  const { report, code, written } = await runKit(
    service.url,
    (line) => {
      if (line.type === 'session') phone = new Phone(line.session_url, line.peer)
      if (line.type === 'do') phone?.do(line.action)
    },
    ['--patience', '30'],
  )
  phone?.stop()
  expect(problemsOf(report)).toEqual([])
  // Pushes of an extended session are numbered, so none comes twice.
  expect(verdictsOf(report, 'not seen')).toEqual(['PLACE5'])
  expect(code).toBe(0)
  expect(written).not.toMatch(/eyJ[\w-]+\.[\w-]+/)
}, 400_000)
