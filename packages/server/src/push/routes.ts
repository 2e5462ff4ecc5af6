/** PUT and DELETE /v1/call/device: where the device of a session token is woken [PUSH1]. */
import { createPublicKey } from 'node:crypto'
import { DeviceRequest, type DeviceResponse } from '@ringwire/protocol/push'
import { createValidator } from '@ringwire/protocol/validate'
import { type BearerDeps, bearerToken, createBearerEndpoint } from '../auth/bearer.ts'
import type { Revoked } from '../auth/revoked.ts'
import { readJsonObject } from '../http/body.ts'
import { empty, failure, json } from '../http/replies.ts'
import type { Clock } from '../ports/clock.ts'
import type { Devices, PushAddress } from '../ports/devices.ts'
import type { Sender } from './sender.ts'

export interface DeviceDeps extends BearerDeps {
  readonly devices: Pick<Devices, 'put' | 'forget'>
  readonly sender: Pick<Sender, 'serves'>
  readonly clock: Clock
  readonly revoked: Pick<Revoked, 'look'>
}

export function createDeviceEndpoints(deps: DeviceDeps) {
  const { devices, sender, clock, tokens, revoked } = deps
  const validate = createValidator(DeviceRequest)
  return {
    putDevice: createBearerEndpoint(deps, async ({ participant, deviceId }, request) => {
      if (deviceId === null) return failure('DEVICE_ID_REQUIRED')
      const read = await readJsonObject(request)
      if (!read.ok) return failure(read.code, 'message' in read ? { message: read.message } : {})
      const checked = validate(read.value)
      if (!checked.ok) return failure('INVALID_REQUEST_BODY', { message: `${checked.field} ${checked.message}.` })
      const address = addressOf(checked.value)
      if (typeof address === 'string') return failure('INVALID_REQUEST_BODY', { message: address })
      // A body may take its time: a participant who was sent away or erased meanwhile must not be known again [SRV2].
      const token = bearerToken(request.headers.get('authorization'))
      if (token === undefined || !tokens.verify(token).ok) return failure('AUTH_TOKEN_INVALID')
      await devices.put({ participant, deviceId, address, registeredAt: clock.now() })
      // Another process may have sent the participant away, and forgotten its devices before this one was there [SRV2].
      await revoked.look()
      if (!tokens.verify(token).ok) {
        await devices.forget(participant, deviceId, address)
        return failure('AUTH_TOKEN_INVALID')
      }
      const { platform } = address
      return json(200, { device_id: deviceId, platform, pushes: sender.serves(platform) } satisfies DeviceResponse)
    }),
    forgetDevice: createBearerEndpoint(deps, async ({ participant, deviceId }) => {
      if (deviceId === null) return failure('DEVICE_ID_REQUIRED')
      await devices.forget(participant, deviceId)
      return empty(204)
    }),
  }
}

/** Whether the bytes are an uncompressed point of P-256. Nothing can be encrypted for any other, and no push be sent. */
function isPoint(bytes: Buffer): boolean {
  if (bytes.length !== 65 || bytes[0] !== 4) return false
  const [x, y] = [bytes.subarray(1, 33), bytes.subarray(33)].map((half) => half.toString('base64url'))
  try {
    createPublicKey({ key: { kty: 'EC', crv: 'P-256', x: x ?? '', y: y ?? '' }, format: 'jwk' })
    return true
  } catch {
    return false
  }
}

/** Where a push service finds the device, or what is wrong with it. */
function addressOf(body: DeviceRequest): PushAddress | string {
  const { platform, subscription, token } = body
  if (platform === 'webpush') {
    if (subscription === undefined) return 'subscription is required for webpush.'
    const { endpoint, keys } = subscription
    if (!URL.canParse(endpoint) || !/^https?:$/.test(new URL(endpoint).protocol))
      return 'subscription.endpoint is no URL.'
    // RFC 8291 section 3.2: an uncompressed point of P-256, and 16 bytes.
    if (!isPoint(Buffer.from(keys.p256dh, 'base64url')))
      return 'subscription.keys.p256dh must be an uncompressed point of P-256.'
    if (Buffer.from(keys.auth, 'base64url').length !== 16) return 'subscription.keys.auth must be 16 bytes.'
    return { platform, endpoint, p256dh: keys.p256dh, auth: keys.auth }
  }
  if (token === undefined) return `token is required for ${platform}.`
  if (platform === 'fcm') return { platform, token }
  const { voip, environment } = body
  if (voip === undefined) return 'voip is required for apns.'
  if (environment === undefined) return 'environment is required for apns.'
  if (!/^[0-9a-fA-F]{16,400}$/.test(token)) return 'token of apns is not hexadecimal.'
  return { platform, token: token.toLowerCase(), voip, environment }
}
