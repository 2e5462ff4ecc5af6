import { expect, test } from 'bun:test'
import { createECDH, generateKeyPairSync } from 'node:crypto'
import { loadConfig } from './config.ts'

const pem = { format: 'pem', type: 'pkcs8' } as const
const problemsOf = (env: Record<string, string>) => {
  const loaded = loadConfig(env)
  return loaded.ok ? [] : loaded.problems
}
const ecdh = createECDH('prime256v1')
ecdh.setPrivateKey(Buffer.alloc(32, 7))
const vapid = {
  RINGWIRE_VAPID_PRIVATE_KEY: ecdh.getPrivateKey('base64url'),
  RINGWIRE_VAPID_SUBJECT: 'mailto:calls@example.com',
}
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export(pem).toString()
const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey.export(pem).toString()
const apns = {
  RINGWIRE_APNS_KEY: p256,
  RINGWIRE_APNS_KEY_ID: 'KEY1234567',
  RINGWIRE_APNS_TEAM_ID: 'TEAM123456',
  RINGWIRE_APNS_TOPIC: 'com.example.calls',
}

test('[PUSH2] VAPID: the public key is that of the private one, and has to fit where it is given', () => {
  const loaded = loadConfig(vapid)
  expect(loaded.ok && loaded.config.vapidPrivateKey?.publicKey).toBe(ecdh.getPublicKey('base64url'))
  expect(problemsOf({ ...vapid, RINGWIRE_VAPID_PUBLIC_KEY: ecdh.getPublicKey('base64url') })).toEqual([])
  expect(problemsOf({ ...vapid, RINGWIRE_VAPID_PUBLIC_KEY: 'BAAA' })).toEqual([
    'RINGWIRE_VAPID_PUBLIC_KEY is not the one of RINGWIRE_VAPID_PRIVATE_KEY',
  ])
  expect(problemsOf({ ...vapid, RINGWIRE_VAPID_SUBJECT: 'calls@example.com' })).toEqual([
    'RINGWIRE_VAPID_SUBJECT must be mailto:… or https://…',
  ])
  expect(problemsOf({ ...vapid, RINGWIRE_VAPID_SUBJECT: '' })).toEqual([
    'RINGWIRE_VAPID_SUBJECT is required with RINGWIRE_VAPID_PRIVATE_KEY',
  ])
})

test('[PUSH2] APNs: the key of a .p8 file, also in one line, and all that belongs to it', () => {
  expect(problemsOf(apns)).toEqual([])
  expect(problemsOf({ ...apns, RINGWIRE_APNS_KEY: p256.replaceAll('\n', '\\n') })).toEqual([])
  const { RINGWIRE_APNS_KEY } = apns
  expect(problemsOf({ RINGWIRE_APNS_KEY })).toEqual([
    'RINGWIRE_APNS_KEY_ID is required with RINGWIRE_APNS_KEY',
    'RINGWIRE_APNS_TEAM_ID is required with RINGWIRE_APNS_KEY',
    'RINGWIRE_APNS_TOPIC is required with RINGWIRE_APNS_KEY',
  ])
})

test('[PUSH2] FCM and APNs may be elsewhere: with TLS anywhere, without it on this machine alone', () => {
  const loaded = loadConfig({
    RINGWIRE_FCM_URL: 'https://push.example.com/',
    RINGWIRE_APNS_URL: 'http://127.0.0.1:8443',
  })
  expect(loaded.ok && [loaded.config.fcmUrl, loaded.config.apnsUrl]).toEqual([
    'https://push.example.com',
    'http://127.0.0.1:8443',
  ])
  for (const name of ['RINGWIRE_FCM_URL', 'RINGWIRE_APNS_URL']) {
    for (const url of [
      'push.example.com',
      'http://push.example.com',
      'https://push.example.com/v1',
      'ftp://127.0.0.1',
    ]) {
      expect(problemsOf({ [name]: url })).toEqual([
        `${name} must be an origin, as https://push.example.com; without TLS only on this machine`,
      ])
    }
  }
})

test('[PUSH2] what is no credential is a problem that shows nothing of it', () => {
  const bad = {
    RINGWIRE_VAPID_PRIVATE_KEY: ['hunter2', 'A'.repeat(43), ecdh.getPublicKey('base64url')],
    RINGWIRE_APNS_KEY: ['hunter2', p384, p256.slice(0, -60)],
    RINGWIRE_FCM_CREDENTIALS: [
      'hunter2',
      '{"private_key":"hunter2"}',
      JSON.stringify({ project_id: 'p', private_key: p256 }),
    ],
  }
  for (const [name, values] of Object.entries(bad)) {
    for (const value of values) {
      const problems = problemsOf({ ...vapid, ...apns, [name]: value })
      expect(problems).toEqual([expect.stringMatching(new RegExp(`^${name} is no `))])
      expect(problems.join()).not.toContain('hunter2')
    }
  }
})

test('[PUSH2] credentials of FCM whose token_uri is plain http are told what it must be', () => {
  const private_key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export(pem)
  const account = { project_id: 'p', client_email: 'calls@p.iam.gserviceaccount.com', private_key }
  const problemsWith = (token_uri: string) =>
    problemsOf({ RINGWIRE_FCM_CREDENTIALS: JSON.stringify({ ...account, token_uri }) })
  expect(problemsWith('http://127.0.0.1:8080/token')).toEqual([])
  expect(problemsWith('http://oauth2.example.com/token')).toEqual([
    'RINGWIRE_FCM_CREDENTIALS is no key of a service account: JSON with project_id, client_email and private_key, and a token_uri over TLS, or on this machine',
  ])
})
