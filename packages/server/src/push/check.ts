/**
 * Whether FCM and APNs take the credentials [PUSH2]: each gets a push for an invalid device, sent like every push.
 * Unknown credentials are refused before the service looks at the device.
 */
import { type ApnsOptions, createApns } from './apns.ts'
import { createFcm, type FcmOptions } from './fcm.ts'
import { apnsOf, fcmOf, type PushConfig } from './open.ts'
import type { Pushed, PushMessage } from './service.ts'

/** What one push service said. It takes the credentials if there is no problem. */
export interface TriedService {
  readonly platform: 'fcm' | 'apns'
  readonly url: string
  readonly problem?: string
  readonly warning?: string
}

/** An access token has half of it. In ms. */
const answerMs = 10_000

/** Asks those that there are credentials for; `ms`: how long each may take. Never rejects, and says no secret. */
export async function tryPushServices(
  config: PushConfig,
  now: () => number,
  ms = answerMs,
): Promise<readonly TriedService[]> {
  const fcm = fcmOf(config, now)
  const apns = apnsOf(config, now)
  const tried = await Promise.all([fcm ? tryFcm(fcm, ms) : [], apns ? tryApns(apns, ms) : []])
  return tried.flat()
}

const messageFor = (now: number, ms: number): PushMessage => ({
  type: 'call.wake',
  callUuid: crypto.randomUUID(),
  payload: { type: 'call.wake' },
  expiresAt: now + ms,
})

async function tryFcm(options: FcmOptions, ms: number): Promise<TriedService[]> {
  const service = createFcm({ ...options, validateOnly: true })
  const pushed = await service.send(
    { platform: 'fcm', token: 'ringwire-config-check' },
    messageFor(options.now(), ms),
    AbortSignal.timeout(ms),
  )
  service.close()
  const { projectId, tokenUrl } = options.credentials
  const problem = fcmProblem(pushed, projectId, new URL(tokenUrl).origin)
  return [{ platform: 'fcm', url: options.url, ...(problem !== undefined && { problem }) }]
}

function fcmProblem(pushed: Pushed, project: string, tokenOrigin: string): string | undefined {
  const { result, reason } = pushed
  if (result === 'accepted' || result === 'gone' || reason === '400 INVALID_ARGUMENT') return undefined
  if (reason.startsWith('no access token')) {
    const said = `${tokenOrigin} gives ${reason}`
    if (!reason.includes('invalid_grant')) return said
    return `${said}; the key was removed, its service account is gone, or the clock of this machine is wrong`
  }
  if (reason === '401') return 'it takes no access token of this service account (401)'
  if (reason === '403 SERVICE_DISABLED')
    return `the Firebase Cloud Messaging API is not enabled in ${project} (${reason})`
  if (reason.startsWith('403')) return `the service account may not send for ${project} (${reason})`
  if (reason.startsWith('404')) return `it knows no project ${project} (${reason})`
  return unclear(pushed)
}

/** In both environments, where they are two. */
export async function tryApns(options: ApnsOptions, ms = answerMs): Promise<TriedService[]> {
  const service = createApns(options)
  const { production, sandbox } = options.urls
  const environments = production === sandbox ? (['production'] as const) : (['production', 'sandbox'] as const)
  const tried = await Promise.all(
    environments.map(async (environment) => {
      const address = { platform: 'apns', token: '0'.repeat(64), voip: false, environment } as const
      const pushed = await service.send(address, messageFor(options.now(), ms), AbortSignal.timeout(ms))
      return { url: options.urls[environment], pushed, problem: apnsProblem(pushed) }
    }),
  )
  service.close()
  const isGoodSomewhere = tried.some(({ problem }) => problem === undefined)
  return tried.map(({ url, pushed, problem }) => {
    // Apple makes keys for one of the two: an operator who needs no other can leave it.
    const isOfTheOther = isGoodSomewhere && isForOtherEnvironment(pushed)
    return {
      platform: 'apns',
      url,
      ...(problem !== undefined && (isOfTheOther ? { warning: problem } : { problem })),
    }
  })
}

/** As Apple's documents have it, and as APNs says it. */
const isForOtherEnvironment = ({ reason }: Pushed) => /^403 BadEnvironmentKey(Id)?InToken$/.test(reason)

function apnsProblem(pushed: Pushed): string | undefined {
  const { result, reason } = pushed
  if (result === 'accepted' || result === 'gone' || reason === '400 BadDeviceToken') return undefined
  if (reason === '403 InvalidProviderToken') {
    return `RINGWIRE_APNS_KEY, _KEY_ID and _TEAM_ID do not belong together, or the key was revoked (${reason})`
  }
  if (reason === '403 ExpiredProviderToken') return `the clock of this machine is wrong (${reason})`
  if (isForOtherEnvironment(pushed)) return `the key is for the other environment alone (${reason})`
  if (/Topic/.test(reason)) return `the key is not for the app of RINGWIRE_APNS_TOPIC (${reason})`
  return unclear(pushed)
}

function unclear({ result, reason }: Pushed): string {
  if (reason === 'timeout') return 'no answer in time'
  if (result === 'limited') return `it was asked too often; try again later (${reason})`
  const hasAnswered = /^\d{3}\b/.test(reason)
  return hasAnswered ? `it answers ${reason}` : `it cannot be reached: ${reason}`
}
