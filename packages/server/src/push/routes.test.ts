import { expect, test } from 'bun:test'
import { createTokens } from '../auth/tokens.ts'
import type { Device } from '../ports/devices.ts'
import { createDeviceEndpoints } from './routes.ts'

const participant = { product: 'shop', role: 'agent', userId: 'ben' }

test('[PUSH1] [SRV2] a token that was taken back while the body came registers no device', async () => {
  let isRevoked = false
  /** What this process hears of when it looks. */
  let onLook = () => {}
  const put: Device[] = []
  const tokens = createTokens({
    secrets: [{ kid: 'k', key: Buffer.alloc(32, 5) }],
    ttlS: 60,
    now: Date.now,
    isRevoked: () => isRevoked,
  })
  const { putDevice } = createDeviceEndpoints({
    tokens,
    localLimits: { participantRequest: () => ({ ok: true }) },
    devices: { put: (device) => void put.push(device), forget: () => put.splice(0).length > 0 },
    revoked: { look: async () => onLook() },
    sender: { serves: () => true },
    clock: { now: Date.now, monotonic: () => performance.now() },
  })
  const { token } = tokens.issue({
    participant,
    displayName: 'Ben',
    contextType: 'order',
    contextId: '17',
    allowedPeerRoles: ['customer'],
    deviceId: 'phone',
  })
  /** What is done between the two halves of the body. */
  const register = async (meanwhile: () => void) => {
    const halves = ['{"platform": "fcm", ', '"token": "x"}']
    const body = new ReadableStream<Uint8Array>(
      {
        // Asked for when somebody reads on: the first half was taken.
        pull(controller) {
          const half = halves.shift()
          if (half === undefined) return controller.close()
          if (halves.length === 0) meanwhile()
          controller.enqueue(new TextEncoder().encode(half))
        },
      },
      { highWaterMark: 0 },
    )
    const headers = { authorization: `Bearer ${token}` }
    return putDevice(new Request('http://localhost/v1/call/device', { method: 'PUT', headers, body }))
  }
  expect((await register(() => {})).status).toBe(200)
  expect(put.splice(0)).toMatchObject([{ participant, deviceId: 'phone' }])
  const refused = await register(() => {
    isRevoked = true
  })
  expect([refused.status, (await refused.json()).error.code, put]).toEqual([401, 'AUTH_TOKEN_INVALID', []])
  // Another process took it back, and this one has not heard of it yet.
  isRevoked = false
  onLook = () => {
    isRevoked = true
  }
  const late = await register(() => {})
  expect([late.status, (await late.json()).error.code, put]).toEqual([401, 'AUTH_TOKEN_INVALID', []])
})
