import type { Device, Devices, PushAddress } from '../ports/devices.ts'
import { pause } from '../time/pause.ts'
import { originOf, type Platform, type Pushed, type PushMessage, type PushService } from './service.ts'
import { createTurns, type TurnLimits } from './turns.ts'

/** The push services that the configuration has credentials for. */
export type PushServices = { readonly [P in Platform]?: PushService<Extract<PushAddress, { platform: P }>> }

/** `dropped`: too many were waiting. `expired`: no attempt was left when the ring was over. */
export type SentResult = Pushed['result'] | 'dropped' | 'expired'

/** Which push it was, and after how many ms it was over. */
export interface Sent {
  readonly device: Device
  readonly message: PushMessage
  readonly afterMs: number
}

export interface SenderOptions {
  readonly services: PushServices
  readonly devices: Pick<Devices, 'forget'>
  readonly now: () => number
  /** What became of each push; `reason` is for the log. */
  readonly onSent: (platform: Platform, result: SentResult, reason: string, sent: Sent) => void
  /** An attempt failed or was limited, and is made again. */
  readonly onRepeated: (platform: Platform) => void
  readonly onError: (error: unknown) => void
  /** How long one attempt may take, in ms. */
  readonly attemptMs?: number
}

export interface Sender {
  /** Whether there are credentials for it, and for any. */
  serves(platform: Platform): boolean
  readonly servesAny: boolean
  /** Sends until it is accepted, refused, or over; `signal` gives it up. Never rejects. */
  send(device: Device, message: PushMessage, signal?: AbortSignal): Promise<SentResult>
  /** Gives up what is under way. */
  close(): void
}

const attemptMs = 5_000
const firstPauseMs = 500
const longestPauseMs = 10_000
/**
 * FCM and APNs are the operator's choice. Anybody may name origins of Web Push: an origin that hangs only fills its own
 * places.
 */
const ofOne = { atOnce: 100, atOnceEach: 100, waiting: 10_000, waitingEach: 10_000 }
const turnLimits: Readonly<Record<Platform, TurnLimits>> = {
  fcm: ofOne,
  // Of two origins: production and sandbox.
  apns: { ...ofOne, atOnce: 200, waiting: 20_000 },
  webpush: { atOnce: 1_000, atOnceEach: 100, waiting: 20_000, waitingEach: 2_000 },
}

export function createSender(options: SenderOptions): Sender {
  const { services, devices, now, onSent, onRepeated, onError, attemptMs: limitMs = attemptMs } = options
  const closing = new AbortController()
  const turns = {
    fcm: createTurns(turnLimits.fcm),
    apns: createTurns(turnLimits.apns),
    webpush: createTurns(turnLimits.webpush),
  }

  async function send(device: Device, message: PushMessage, signal?: AbortSignal): Promise<SentResult> {
    const begun = now()
    const { platform } = device.address
    const origin = originOf(device.address)
    const done = (result: SentResult, reason: string): SentResult => {
      onSent(platform, result, reason, { device, message, afterMs: Math.max(0, now() - begun) })
      return result
    }
    if (turns[platform].isFull(origin)) return done('dropped', 'too many')
    const whole = signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal])
    let last: Pushed | undefined
    for (let n = 0; ; n++) {
      if (whole.aborted) return done('expired', 'given up')
      if (message.expiresAt <= now()) return done('expired', last?.reason ?? 'too late')
      const pushed = await turns[platform].take(origin, whole, async () =>
        // It may have waited for its turn until the ring was over.
        message.expiresAt <= now() ? undefined : await attempt(device.address, message, whole),
      )
      if (pushed === undefined) continue
      last = pushed
      if (last.result === 'gone') await forget(device)
      if (last.result !== 'limited' && last.result !== 'failed') return done(last.result, last.reason)
      // Anybody may name an endpoint that says "at once" each time.
      const pauseMs = Math.max(last.retryAfterMs ?? 0, Math.min(longestPauseMs, firstPauseMs * 2 ** n))
      if (now() + pauseMs >= message.expiresAt) return done(last.result, last.reason)
      if (whole.aborted) return done('expired', 'given up')
      onRepeated(platform)
      await pause(pauseMs, whole)
    }
  }

  function attempt(address: PushAddress, message: PushMessage, signal: AbortSignal): Promise<Pushed> {
    const service = services[address.platform] as PushService | undefined
    if (service === undefined) return Promise.resolve({ result: 'refused', reason: 'no credentials' })
    return service.send(address, message, AbortSignal.any([signal, AbortSignal.timeout(limitMs)]))
  }

  async function forget({ participant, deviceId, address }: Device): Promise<void> {
    try {
      await devices.forget(participant, deviceId, address)
    } catch (error) {
      onError(error)
    }
  }

  return {
    serves: (platform) => services[platform] !== undefined,
    servesAny: Object.keys(services).length > 0,
    send,
    close() {
      closing.abort()
      for (const service of Object.values(services)) service.close()
    },
  }
}
