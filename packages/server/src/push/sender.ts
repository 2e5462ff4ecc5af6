import type { Device, Devices, PushAddress } from '../ports/devices.ts'
import type { Platform, Pushed, PushMessage, PushService } from './service.ts'

/** The push services that the configuration has credentials for. */
export type PushServices = { readonly [P in Platform]?: PushService<Extract<PushAddress, { platform: P }>> }

/** `dropped`: too many were waiting. `expired`: no attempt was left when the ring was over. */
export type SentResult = Pushed['result'] | 'dropped' | 'expired'

export interface SenderOptions {
  readonly services: PushServices
  readonly devices: Pick<Devices, 'forget'>
  readonly now: () => number
  /** What became of each push; `reason` is for the log. */
  readonly onSent: (platform: Platform, result: SentResult, reason: string) => void
  readonly onError: (error: unknown) => void
  /** How long one attempt may take, in ms. */
  readonly attemptMs?: number
}

export interface Sender {
  /** Whether there are credentials for it. */
  serves(platform: Platform): boolean
  /** Sends until it is accepted, refused, or over; `signal` gives it up. Never rejects. */
  send(device: Device, message: PushMessage, signal?: AbortSignal): Promise<SentResult>
  /** Gives up what is under way. */
  close(): void
}

const attemptMs = 5_000
const firstPauseMs = 500
const longestPauseMs = 10_000
/** So many at once, and so many more wait: a push service that stands still costs no memory without end. */
const mostAtOnce = 100
const mostWaiting = 10_000

export function createSender(options: SenderOptions): Sender {
  const { services, devices, now, onSent, onError, attemptMs: limitMs = attemptMs } = options
  const closing = new AbortController()
  const waiting: (() => void)[] = []
  let busy = 0

  async function send(device: Device, message: PushMessage, signal?: AbortSignal): Promise<SentResult> {
    const { platform } = device.address
    if (busy >= mostAtOnce && waiting.length >= mostWaiting) return done(platform, 'dropped', 'too many')
    const whole = signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal])
    let last: Pushed | undefined
    for (let n = 0; ; n++) {
      if (whole.aborted) return done(platform, 'expired', 'given up')
      if (message.expiresAt <= now()) return done(platform, 'expired', last?.reason ?? 'too late')
      last = await inTurn(() => attempt(device.address, message, whole))
      if (last.result === 'gone') await forget(device)
      if (last.result !== 'limited' && last.result !== 'failed') return done(platform, last.result, last.reason)
      const pauseMs = last.retryAfterMs ?? Math.min(longestPauseMs, firstPauseMs * 2 ** n)
      if (now() + pauseMs >= message.expiresAt) return done(platform, last.result, last.reason)
      await pause(pauseMs, whole)
    }
  }

  function attempt(address: PushAddress, message: PushMessage, signal: AbortSignal): Promise<Pushed> {
    const service = services[address.platform] as PushService | undefined
    if (service === undefined) return Promise.resolve({ result: 'refused', reason: 'no credentials' })
    return service.send(address, message, AbortSignal.any([signal, AbortSignal.timeout(limitMs)]))
  }

  async function inTurn<T>(action: () => Promise<T>): Promise<T> {
    if (busy >= mostAtOnce) await new Promise<void>((resolve) => waiting.push(resolve))
    else busy++
    try {
      return await action()
    } finally {
      // Its turn passes on to whoever waits.
      const next = waiting.shift()
      if (next === undefined) busy--
      else next()
    }
  }

  async function forget({ participant, deviceId, address }: Device): Promise<void> {
    try {
      await devices.forget(participant, deviceId, address)
    } catch (error) {
      onError(error)
    }
  }

  function done(platform: Platform, result: SentResult, reason: string): SentResult {
    onSent(platform, result, reason)
    return result
  }

  return {
    serves: (platform) => services[platform] !== undefined,
    send,
    close() {
      closing.abort()
      for (const service of Object.values(services)) service.close()
    },
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
  })
}
