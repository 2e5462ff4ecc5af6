import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CallWake } from '@ringwire/protocol/push'
import { createValidator } from '@ringwire/protocol/validate'
import { type Certificates, makeCertificates } from '@ringwire/testkit/certificates'
import { invite, someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { Service } from '@ringwire/testkit/service'
import { ask } from '../scenarios/backend/calls.ts'
import { type ApnsServer, startApnsServer } from './apns-server.ts'
import { type FcmServer, startFcmServer } from './fcm-server.ts'

/** From the settings to the wire: the service as a process, credentials in files, and push services that have TLS. */
let certificates: Certificates
let fcm: FcmServer
let apns: ApnsServer
let service: Service
beforeAll(async () => {
  certificates = await makeCertificates()
  fcm = await startFcmServer(certificates.server)
  apns = await startApnsServer(certificates.server)
  service = new Service({
    RINGWIRE_FCM_URL: fcm.url,
    RINGWIRE_APNS_URL: apns.url,
    RINGWIRE_APNS_KEY_ID: 'KEY1234567',
    RINGWIRE_APNS_TEAM_ID: 'TEAM123456',
    RINGWIRE_APNS_TOPIC: 'com.example.calls',
    NODE_EXTRA_CA_CERTS: certificates.ca,
  })
  const file = async (name: string, text: string) => {
    const path = join(service.dataDir, name)
    await writeFile(path, text, { mode: 0o600 })
    return path
  }
  await service.start({
    RINGWIRE_FCM_CREDENTIALS_FILE: await file('service-account.json', fcm.credentials),
    RINGWIRE_APNS_KEY_FILE: await file('key.p8', apns.key),
  })
})
afterAll(async () => {
  await service.dispose()
  await fcm.stop()
  await apns.stop()
  await certificates.remove()
})

async function register(calleeId: string, body: { platform: string; [name: string]: unknown }): Promise<void> {
  const token = await service.token({ user_id: calleeId, role: 'agent', device_id: 'phone' })
  const response = await fetch(`${service.url}/v1/call/device`, {
    method: 'PUT',
    headers: { Authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
    keepalive: false,
  })
  const { platform } = body
  expect(await response.json()).toEqual({ device_id: 'phone', platform, pushes: true })
}

const devicesOf = async (calleeId: string) => (await ask(service, 'GET', `participants/agent/${calleeId}`)).body.devices
const forgotten = (calleeId: string) =>
  until('the device is forgotten', async () => (await devicesOf(calleeId)).length === 0)
const connectCaller = () => service.connect({ user_id: someone('caller'), role: 'customer' })
const isWake = (value: unknown) => createValidator(CallWake)(value).ok

test('[PUSH2] FCM: a call rings, and stops; a token that is dead is forgotten', async () => {
  const calleeId = someone('callee')
  fcm.register('phone-of-ben')
  await register(calleeId, { platform: 'fcm', token: 'phone-of-ben' })
  const caller = await connectCaller()
  const callUuid = await invite(caller, calleeId)
  const { token, data, android } = await fcm.messages.next()
  expect(token).toBe('phone-of-ben')
  expect(isWake({ ...data, caller: JSON.parse(data.caller) })).toBe(true)
  expect(data).toMatchObject({ type: 'call.wake', call_uuid: callUuid })
  expect(android).toEqual({ priority: 'HIGH', ttl: expect.stringMatching(/^[1-4]?\ds$/), collapse_key: callUuid })

  caller.send('call.cancel', { call_uuid: callUuid })
  expect((await fcm.messages.next()).data).toMatchObject({
    type: 'call.wake_cancelled',
    call_uuid: callUuid,
    status: 'cancelled',
  })

  fcm.remove('phone-of-ben')
  await invite(caller, calleeId)
  await forgotten(calleeId)
})

test('[PUSH2] APNs: a call rings by a VoIP push; a token that is dead is forgotten', async () => {
  const calleeId = someone('callee')
  const token = 'ab'.repeat(32)
  await register(calleeId, { platform: 'apns', token, voip: true, environment: 'production' })
  const caller = await connectCaller()
  const callUuid = await invite(caller, calleeId)
  const { headers, body } = await apns.requests.next()
  expect(headers).toMatchObject({
    ':method': 'POST',
    ':scheme': 'https',
    ':path': `/3/device/${token}`,
    'apns-topic': 'com.example.calls.voip',
    'apns-push-type': 'voip',
    'apns-priority': '10',
    'apns-collapse-id': callUuid,
  })
  const { aps, ...payload } = body
  expect([aps, isWake(payload), payload.call_uuid]).toEqual([{}, true, callUuid])
  expect(headers['apns-expiration']).toBe(String(Math.floor(Date.parse(payload.expires_at) / 1000)))

  const dead = someone('callee')
  await register(dead, { platform: 'apns', token: 'dead'.repeat(16), voip: true, environment: 'sandbox' })
  await invite(caller, dead)
  await forgotten(dead)
  expect((await devicesOf(calleeId)).length).toBe(1)
})
