import type { Config } from '../config/config.ts'
import { createAddressGuard } from '../outgoing/addresses.ts'
import { createPost } from '../outgoing/post.ts'
import { type ApnsOptions, apnsUrls, createApns } from './apns.ts'
import { createFcm, type FcmOptions } from './fcm.ts'
import { createSender, type PushServices, type Sender, type SenderOptions } from './sender.ts'
import { createWebPush } from './web-push.ts'

export type PushConfig = Pick<
  Config,
  | 'vapidPrivateKey'
  | 'vapidSubject'
  | 'vapidUrl'
  | 'fcmCredentials'
  | 'fcmUrl'
  | 'apnsKey'
  | 'apnsKeyId'
  | 'apnsTeamId'
  | 'apnsTopic'
  | 'apnsUrl'
>

export interface OpenSenderOptions extends Omit<SenderOptions, 'services'> {
  readonly config: PushConfig
}

/** Sends with the push services that the configuration has credentials for. */
export function openSender({ config, ...options }: OpenSenderOptions): Sender {
  return createSender({ ...options, services: servicesOf(config, options.now) })
}

function servicesOf(config: PushConfig, now: () => number): PushServices {
  const { vapidPrivateKey, vapidSubject, vapidUrl } = config
  const post = createPost({ guard: createAddressGuard([]), trusted: vapidUrl === null ? [] : [vapidUrl] })
  const fcm = fcmOf(config, now)
  const apns = apnsOf(config, now)
  return {
    ...(vapidPrivateKey !== null &&
      vapidSubject !== null && {
        webpush: createWebPush({ key: vapidPrivateKey, subject: vapidSubject, post, now }),
      }),
    ...(fcm && { fcm: createFcm(fcm) }),
    ...(apns && { apns: createApns(apns) }),
  }
}

/** Undefined if there are no credentials. */
export function fcmOf({ fcmCredentials, fcmUrl }: PushConfig, now: () => number): FcmOptions | undefined {
  return fcmCredentials === null ? undefined : { credentials: fcmCredentials, url: fcmUrl, now }
}

/** Undefined where they are not whole. */
export function apnsOf(config: PushConfig, now: () => number): ApnsOptions | undefined {
  const { apnsKey: key, apnsKeyId: keyId, apnsTeamId: teamId, apnsTopic: topic, apnsUrl: url } = config
  if (key === null || keyId === null || teamId === null || topic === null) return undefined
  const urls = url === null ? apnsUrls : { production: url, sandbox: url }
  return { credentials: { key, keyId, teamId, topic }, urls, now }
}
