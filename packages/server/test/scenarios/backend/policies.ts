import { describe, expect, test } from 'bun:test'
import type { TokenResponse } from '@ringwire/protocol/rest'
import type { Client } from '@ringwire/testkit/client'
import { acceptedCall, someone } from '@ringwire/testkit/flows'
import { soon } from '@ringwire/testkit/patience'
import { productKey, type Service } from '@ringwire/testkit/service'
import { runBeside, setProduct } from '../../support/products.ts'
import { answer, offer, request } from '../../support/sessions.ts'
import { type Start, serviceFor } from '../calls/composition.ts'

const second = { id: 'second', secret: 'another-secret-that-only-tests-know-01234' }
const env = {
  RINGWIRE_BOOTSTRAP_KEYS: [productKey, second].map(({ id, secret }) => `${id}:${secret}:shop`).join(';'),
  RINGWIRE_TURN_URLS: 'turn:turn.example.com',
  RINGWIRE_TURN_SECRET: 'a-secret-of-tests',
}

interface Who {
  readonly userId: string
  readonly role: 'customer' | 'agent'
}

async function issue(service: Service, { userId, role }: Who, key = productKey): Promise<Response> {
  const body = {
    ...{ context_type: 'order', context_id: '1', display_name: userId, user_id: userId, role, product: 'shop' },
    allowed_peer_role: role === 'customer' ? 'agent' : 'customer',
  }
  const headers = { 'X-SVC-Product-Key-ID': key.id, 'X-SVC-Product-Secret': key.secret }
  return fetch(`${service.url}/v1/call/session-token`, { method: 'POST', headers, body: JSON.stringify(body) })
}
const tokenOf = async (answered: Response) => (await answered.json()) as TokenResponse

async function connect(service: Service, who: Who): Promise<Client> {
  return connectWith(service, (await tokenOf(await issue(service, who))).token)
}

async function connectWith(service: Service, token: string): Promise<Client> {
  const client = service.open(token)
  await client.next('auth.ok')
  return client
}

/** Until both nodes of a pair say so; the test's time is the patience. */
async function everywhere(isSo: () => Promise<boolean>): Promise<void> {
  for (let inRow = 0; inRow < 2; ) inRow = (await isSo()) ? inRow + 1 : 0
}

const host = 'candidate:1 1 udp 2122260223 192.168.1.23 54609 typ host generation 0'
const relay = 'candidate:2 1 udp 41885439 198.51.100.5 61234 typ relay raddr 192.168.1.23 rport 54609 generation 0'
const passed = 'candidate:2 1 udp 41885439 198.51.100.5 61234 typ relay raddr 0.0.0.0 rport 9 generation 0'

/** The settings of a product or a key count on every node within a second, and need no read of a store. */
export function registerPolicies(name: string, start: Start): void {
  describe(`policies of products and keys, ${name}`, () => {
    const service = serviceFor(start, env)

    test('[KEY1] who disables a key closes its sockets with 4403 on every node, and its tokens wait until it is enabled', async () => {
      const ann: Who = { userId: someone('ann'), role: 'customer' }
      const other = await connect(service(), ann)
      const { token } = await tokenOf(await issue(service(), ann, second))
      // One at each node of a pair: when both are closed, both know.
      const sockets = [await connectWith(service(), token), await connectWith(service(), token)]
      await runBeside(service(), 'keys', 'disable', second.id)
      const disabledAt = performance.now()
      const closed = await Promise.all(sockets.map((socket) => socket.closed))
      expect(performance.now() - disabledAt).toBeLessThan(soon(1_000))
      expect(closed.map(({ code }) => code)).toEqual([4403, 4403])
      const status = async () => {
        const headers = { Authorization: `Bearer ${token}` }
        return (await fetch(`${service().url}/v1/calls/history`, { headers })).status
      }
      expect([await status(), await status()]).toEqual([401, 401])
      const refused = service().open(token)
      expect((await refused.closed).code).toBe(4401)
      expect((await issue(service(), ann, second)).status).toBe(401)
      // Another key is not affected.
      expect((await request(other, 'call.end', { call_uuid: crypto.randomUUID() }))?.error.code).toBe('CALL_NOT_FOUND')
      await runBeside(service(), 'keys', 'enable', second.id)
      await everywhere(async () => (await status()) === 200)
    })

    test('[PRIV1] in a product that only relays, nothing else is passed on, and each sender is answered as ever', async () => {
      const [ann, ben]: [Who, Who] = [
        { userId: someone('ann'), role: 'customer' },
        { userId: someone('ben'), role: 'agent' },
      ]
      expect(await tokenOf(await issue(service(), ann))).not.toHaveProperty('ice_transport_policy')
      await setProduct(service(), 'shop', '--media', 'relay')
      const isSet = async () => (await tokenOf(await issue(service(), ann))).ice_transport_policy === 'relay'
      await everywhere(isSet)
      const { token } = await tokenOf(await issue(service(), ann))
      const headers = { Authorization: `Bearer ${token}` }
      const again = await fetch(`${service().url}/v1/call/ice-servers`, { method: 'POST', headers })
      expect(await again.json()).toMatchObject({ ice_transport_policy: 'relay' })
      const [caller, callee] = [await connect(service(), ann), await connect(service(), ben)]
      const callUuid = await acceptedCall({ caller, callee, calleeId: ben.userId })
      const candidateOf = (candidate: string) => ({
        ...{ call_uuid: callUuid, sdp: null, localAddress: '192.168.1.23' },
        candidate: { candidate, sdpMid: '0' },
      })
      const sdp = (line: string) => `v=0\r\nc=IN IP4 192.168.1.23\r\na=${line}\r\n`
      const described = (of: (callUuid: string) => object, type: 'offer' | 'answer') => ({
        ...of(callUuid),
        sdp: { type, sdp: sdp(host) + sdp(relay), candidates: [{ candidate: host }] },
        // Of the other event, and of none: neither looked at nor passed on.
        ...{ candidate: null, localAddress: '192.168.1.23' },
      })
      for (const [from, to] of [
        [caller, callee],
        [callee, caller],
      ] as const) {
        for (const text of [host, 'nonsense', relay, ''])
          expect(await request(from, 'webrtc.ice_candidate', candidateOf(text))).toBeUndefined()
        expect((await to.next('webrtc.ice_candidate')).data.candidate).toEqual({ candidate: passed, sdpMid: '0' })
        expect((await to.next('webrtc.ice_candidate')).data.candidate.candidate).toBe('')
      }
      caller.send('webrtc.offer', described(offer, 'offer'))
      callee.send('webrtc.answer', described(answer, 'answer'))
      for (const told of [await callee.next('webrtc.offer'), await caller.next('webrtc.answer')]) {
        expect(told.data.sdp.sdp).toBe(`v=0\r\nc=IN IP4 0.0.0.0\r\n${sdp(passed).replace('192.168.1.23', '0.0.0.0')}`)
      }
      const heard = JSON.stringify([caller.all, callee.all])
      expect(heard).not.toContain('192.168.1.23')
      expect(heard).not.toContain('INTERNAL_ERROR')
      await setProduct(service(), 'shop', '--media', 'all')
      await everywhere(async () => !(await isSet()))
      caller.send('webrtc.ice_candidate', candidateOf(host))
      expect((await callee.next('webrtc.ice_candidate')).data.candidate.candidate).toBe(host)
    })
  })
}
