import { type PushToken, registerPhone } from '@ringwire/client/push'
import { readPush } from '@ringwire/client/react-native'
import { Platform } from 'react-native'
import VoipPush from 'react-native-voip-push-notification'
import { getToken, service } from './backend.ts'
import { leave, ring } from './phone.ts'

/** A push of FCM or PushKit, as it came. */
export function pushed(data: unknown): void {
  const push = readPush(data)
  if (push?.type === 'call.wake') void ring(push)
  else if (push) leave(push.callUuid, push.status)
}

/** At each start of the app, and when the push service gives it another token. */
export async function register(pushToken: PushToken): Promise<void> {
  const { token } = await (await getToken()).json()
  const isSent = await registerPhone({ url: service, token, pushToken })
  if (!isSent) console.warn('The service has no credentials for pushes to this platform.')
}

/** Android: hand `pushed` the `data` of each message of FCM, and `register` its token: see README.md. */
export function startWaking(): void {
  if (Platform.OS !== 'ios') return
  const environment = __DEV__ ? 'sandbox' : 'production'
  VoipPush.addEventListener('register', (token) => {
    register({ platform: 'apns', token, voip: true, environment }).catch(({ code }) => console.warn(code))
  })
  VoipPush.addEventListener('notification', pushed)
  // Pushes that came before the JavaScript ran.
  VoipPush.addEventListener('didLoadWithEvents', (events) => {
    for (const { name, data } of events) {
      if (name === VoipPush.RNVoipPushRemoteNotificationReceivedEvent) pushed(data)
    }
  })
  VoipPush.registerVoipToken()
}
