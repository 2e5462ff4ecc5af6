import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { type Certificates, makeCertificates } from '@ringwire/testkit/certificates'
import { freePort } from '@ringwire/testkit/ports'
import { loadConfig } from '../../src/config/config.ts'
import { readApnsKey } from '../../src/config/push-keys.ts'
import { tryApns, tryPushServices } from '../../src/push/check.ts'
import { type Box, createBox } from '../cli/command.ts'
import { type ApnsServer, startApnsServer } from './apns-server.ts'
import { type FcmServer, startFcmServer } from './fcm-server.ts'

let certificates: Certificates
let fcm: FcmServer
let apns: ApnsServer
beforeAll(async () => {
  certificates = await makeCertificates()
  fcm = await startFcmServer(certificates.server)
  apns = await startApnsServer(certificates.server)
})
afterAll(async () => {
  await fcm.stop()
  await apns.stop()
  await certificates.remove()
})
/** Without TLS: what runs in this process believes no authority of the tests. */
let plainFcm: FcmServer
let plainApns: ApnsServer
beforeAll(async () => {
  plainFcm = await startFcmServer()
  plainApns = await startApnsServer()
})
afterAll(async () => {
  await plainFcm.stop()
  await plainApns.stop()
})

function configOf(env: Record<string, string>) {
  const loaded = loadConfig(env)
  if (!loaded.ok) throw new Error(loaded.problems.join())
  return loaded.config
}
const problemIn = async (env: Record<string, string>) =>
  (await tryPushServices(configOf(env), Date.now)).find(({ problem }) => problem !== undefined)?.problem

let box: Box
beforeEach(() => {
  box = createBox()
})
afterEach(() => box.clean())

const ofFcm = () => ({ RINGWIRE_FCM_URL: fcm.url, RINGWIRE_FCM_CREDENTIALS: fcm.credentials })
const ofApns = () => ({
  RINGWIRE_APNS_URL: apns.url,
  RINGWIRE_APNS_KEY: apns.key,
  RINGWIRE_APNS_KEY_ID: 'KEY1234567',
  RINGWIRE_APNS_TEAM_ID: 'TEAM123456',
  RINGWIRE_APNS_TOPIC: 'com.example.calls',
})

/** `ringwire config check`. No part of a credential is in what it prints. */
async function check(env: Record<string, string>, args = '') {
  const ended = await box.run(`config check ${args}`, { env: { NODE_EXTRA_CA_CERTS: certificates.ca, ...env } })
  for (const text of [ended.out, ended.err]) {
    expect(text).not.toMatch(/PRIVATE KEY|gserviceaccount|eyJ|Bearer/)
  }
  return ended
}

/** The problem that it reports, with exit code 1. */
async function problemOf(env: Record<string, string>): Promise<string> {
  const { code, err } = await check(env)
  expect([code, err]).toEqual([1, expect.not.stringContaining('The configuration is good')])
  return err.trim()
}

test('[PUSH2] config check: FCM and APNs take the credentials, and nobody is woken', async () => {
  const { code, err } = await check({ ...ofFcm(), ...ofApns() })
  expect([code, err.trim().split('\n')]).toEqual([
    0,
    [
      `FCM at ${fcm.url}: it takes the credentials.`,
      `APNs at ${apns.url}: it takes the credentials.`,
      'The configuration is good.',
    ],
  ])
  expect([fcm.validated.all.length, fcm.messages.all.length]).toEqual([1, 0])
  const { headers } = await apns.requests.next()
  expect([headers[':path'], headers['apns-topic']]).toEqual([`/3/device/${'0'.repeat(64)}`, 'com.example.calls'])
  const { out } = await check({ ...ofFcm(), ...ofApns() }, '--json')
  expect(JSON.parse(out)).toMatchObject({
    ok: true,
    problems: [],
    push: [
      { platform: 'fcm', url: fcm.url },
      { platform: 'apns', url: apns.url },
    ],
  })
})

test('[PUSH2] config check: Google does not know the key', async () => {
  const other = await startFcmServer()
  await other.stop()
  const { private_key } = JSON.parse(other.credentials)
  const wrongKey = JSON.stringify({ ...JSON.parse(fcm.credentials), private_key })
  expect(await problemOf({ ...ofFcm(), RINGWIRE_FCM_CREDENTIALS: wrongKey })).toBe(
    `FCM at ${fcm.url}: ${fcm.url} gives no access token: 400 invalid_grant (Invalid JWT Signature.); the key was removed, its service account is gone, or the clock of this machine is wrong`,
  )
})

test('[PUSH2] config check: what FCM says no to', async () => {
  const said = async (status: number, error: object) => {
    plainFcm.answers({ status, error })
    return problemIn({ RINGWIRE_FCM_URL: plainFcm.url, RINGWIRE_FCM_CREDENTIALS: plainFcm.credentials })
  }
  const details = [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'SERVICE_DISABLED' }]
  expect(await said(401, { status: 'UNAUTHENTICATED' })).toBeUndefined()
  expect(await said(403, { status: 'PERMISSION_DENIED' })).toBe(
    'the service account may not send for calls-1042 (403 PERMISSION_DENIED)',
  )
  expect(await said(403, { status: 'PERMISSION_DENIED', details })).toBe(
    'the Firebase Cloud Messaging API is not enabled in calls-1042 (403 SERVICE_DISABLED)',
  )
  expect(await said(404, { status: 'NOT_FOUND' })).toBe('it knows no project calls-1042 (404 NOT_FOUND)')
  expect(await said(503, { status: 'UNAVAILABLE' })).toBe('it answers 503 UNAVAILABLE')
  expect(await said(429, { status: 'RESOURCE_EXHAUSTED' })).toBe(
    'it was asked too often; try again later (429 RESOURCE_EXHAUSTED)',
  )
  plainFcm.answers({ status: 401 })
  expect(await said(401, {})).toBe('it takes no access token of this service account (401)')
})

test('[PUSH2] config check: what APNs says no to', async () => {
  const own = { RINGWIRE_APNS_URL: plainApns.url, RINGWIRE_APNS_KEY: plainApns.key }
  expect(await problemIn({ ...ofApns(), ...own, RINGWIRE_APNS_KEY_ID: 'OTHER12345' })).toBe(
    'RINGWIRE_APNS_KEY, _KEY_ID and _TEAM_ID do not belong together, or the key was revoked (403 InvalidProviderToken)',
  )
  const said = async (status: number, reason: string) => {
    await plainApns.plan({ status, reason })
    return problemIn({ ...ofApns(), ...own })
  }
  expect(await said(403, 'ExpiredProviderToken')).toBe('the clock of this machine is wrong (403 ExpiredProviderToken)')
  expect(await said(400, 'TopicDisallowed')).toBe(
    'the key is not for the app of RINGWIRE_APNS_TOPIC (400 TopicDisallowed)',
  )
  expect(await said(403, 'BadEnvironmentKeyInToken')).toBe(
    'the key is for the other environment alone (403 BadEnvironmentKeyInToken)',
  )
  expect(await said(400, 'BadPath')).toBe('it answers 400 BadPath')
})

test('[PUSH2] config check: a push service that cannot be reached, or is believed by nobody, is told as such', async () => {
  const nowhere = `https://127.0.0.1:${await freePort()}`
  expect(await problemOf({ ...ofApns(), RINGWIRE_APNS_URL: nowhere })).toBe(
    `APNs at ${nowhere}: it cannot be reached: ECONNREFUSED`,
  )
  expect(await problemOf({ ...ofFcm(), RINGWIRE_FCM_URL: nowhere })).toMatch(/: it cannot be reached: \w+$/)
  expect(await problemOf({ ...ofApns(), NODE_EXTRA_CA_CERTS: '' })).toMatch(
    /: it cannot be reached: UNABLE_TO_VERIFY_LEAF_SIGNATURE$/,
  )
})

test('[PUSH2] config check: a key for one environment of APNs is good there, and a warning says so', async () => {
  const production = plainApns
  const key = readApnsKey(production.key)
  if (key === undefined) throw new Error('no key')
  const credentials = { key, keyId: 'KEY1234567', teamId: 'TEAM123456', topic: 'com.example.calls' }
  const sandbox = await startApnsServer()
  const urls = { production: production.url, sandbox: sandbox.url }
  await sandbox.plan({ status: 403, reason: 'BadEnvironmentKeyInToken' })
  expect(await tryApns({ credentials, urls, now: Date.now })).toEqual([
    { platform: 'apns', url: production.url },
    {
      platform: 'apns',
      url: sandbox.url,
      warning: 'the key is for the other environment alone (403 BadEnvironmentKeyInToken)',
    },
  ])
  await sandbox.stop()
})

test('[PUSH2] config check: a push service that is silent has its time', async () => {
  const { url, key, plan } = plainApns
  await plan('silence')
  const config = configOf({ ...ofApns(), RINGWIRE_APNS_URL: url, RINGWIRE_APNS_KEY: key })
  expect(await tryPushServices(config, Date.now, 300)).toEqual([
    { platform: 'apns', url, problem: 'no answer in time' },
  ])
})
