import type { Config } from '../config/config.ts'
import { createAddressGuard } from '../outgoing/addresses.ts'
import { createPost } from '../outgoing/post.ts'
import { apnsUrls, createApns } from './apns.ts'
import { createFcm } from './fcm.ts'
import { createSender, type PushServices, type Sender, type SenderOptions } from './sender.ts'
import { createWebPush } from './web-push.ts'

type PushConfig = Pick<
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
  const { vapidPrivateKey, vapidSubject, fcmCredentials, apnsKey, apnsKeyId, apnsTeamId, apnsTopic, apnsUrl } = config
  const post = createPost({ guard: createAddressGuard([]), trusted: config.vapidUrl })
  const hasApns = apnsKey !== null && apnsKeyId !== null && apnsTeamId !== null && apnsTopic !== null
  return {
    ...(vapidPrivateKey !== null &&
      vapidSubject !== null && {
        webpush: createWebPush({ key: vapidPrivateKey, subject: vapidSubject, post, now }),
      }),
    ...(fcmCredentials !== null && { fcm: createFcm({ credentials: fcmCredentials, url: config.fcmUrl ?? '', now }) }),
    ...(hasApns && {
      apns: createApns({
        credentials: { key: apnsKey, keyId: apnsKeyId, teamId: apnsTeamId, topic: apnsTopic },
        urls: apnsUrl === null ? apnsUrls : { production: apnsUrl, sandbox: apnsUrl },
        now,
      }),
    }),
  }
}
