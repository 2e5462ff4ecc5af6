import { apnsKey, fcmCredentials, pushOrigin, vapidKey, vapidSubject } from '../push-values.ts'
import { setting, unset } from '../setting.ts'
import { baseUrl, text } from '../values.ts'

const inFile = { hasFile: true } as const

/** With which push services devices are woken; each setting may be in a file [PUSH2]. */
export const push = {
  vapidPrivateKey: unset(
    'RINGWIRE_VAPID_PRIVATE_KEY',
    vapidKey(),
    null,
    'unset: no Web Push',
    'The private key by which push services of browsers know this service (VAPID).',
    { secret: true },
  ),
  vapidPublicKey: unset(
    'RINGWIRE_VAPID_PUBLIC_KEY',
    text('base64url'),
    null,
    'unset: of the private key',
    'The key with which pages subscribe. If it is given, it has to fit the private key.',
    inFile,
  ),
  vapidSubject: unset(
    'RINGWIRE_VAPID_SUBJECT',
    vapidSubject(),
    null,
    'unset',
    'Contact for push services: mailto:… or https://…; required with RINGWIRE_VAPID_PRIVATE_KEY.',
    inFile,
  ),
  vapidUrl: unset(
    'RINGWIRE_VAPID_URL',
    baseUrl(),
    null,
    'unset: none',
    'Origin of a push service that gets requests without TLS, and on a private address, too: for tests.',
    inFile,
  ),
  fcmCredentials: unset(
    'RINGWIRE_FCM_CREDENTIALS',
    fcmCredentials(),
    null,
    'unset: no FCM',
    'The key of a service account of Firebase, as JSON.',
    { secret: true },
  ),
  fcmUrl: setting(
    'RINGWIRE_FCM_URL',
    pushOrigin(),
    'https://fcm.googleapis.com',
    'Address of FCM: another one is for tests. Access tokens come from the address in the credentials (token_uri).',
    inFile,
  ),
  apnsKey: unset('RINGWIRE_APNS_KEY', apnsKey(), null, 'unset: no APNs', 'The key for APNs, PEM, as in the .p8 file.', {
    secret: true,
  }),
  apnsKeyId: unset('RINGWIRE_APNS_KEY_ID', text(), null, 'unset', 'Its id; required with RINGWIRE_APNS_KEY.', inFile),
  apnsTeamId: unset(
    'RINGWIRE_APNS_TEAM_ID',
    text(),
    null,
    'unset',
    'The team; required with RINGWIRE_APNS_KEY.',
    inFile,
  ),
  apnsTopic: unset(
    'RINGWIRE_APNS_TOPIC',
    text(),
    null,
    'unset',
    'The bundle id of the app; required with RINGWIRE_APNS_KEY.',
    inFile,
  ),
  apnsUrl: unset(
    'RINGWIRE_APNS_URL',
    pushOrigin(),
    null,
    'unset: those of Apple',
    'Address of APNs, for both environments: for tests. It has to speak HTTP/2.',
    inFile,
  ),
}
