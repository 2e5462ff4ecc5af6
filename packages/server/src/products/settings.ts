import type { ProductShown } from '@ringwire/protocol/backend'
import type { AddressGuard } from '../outgoing/addresses.ts'
import { newWebhookSecret } from '../outgoing/signature.ts'
import { urlProblem } from '../outgoing/url.ts'
import type { ProductSettings } from '../ports/product-store.ts'

/** How long calls of a product may ring at the most, in ms [RING1]. */
export const ringTimeoutLimits = { min: 5_000, max: 180_000 } as const

/** What to do while the hook is developed on one machine. */
const localHint = 'To be asked on this machine while you develop, set RINGWIRE_WEBHOOK_ALLOW=127.0.0.1.'

export type SettingsRead =
  | { readonly ok: true; readonly changes: Partial<ProductSettings> }
  | { readonly ok: false; readonly message: string }

class Bad extends Error {}

/** Settings as a backend sends them: what is not given stays as it is. Fields that are not known are ignored. */
export function readSettings(body: Readonly<Record<string, unknown>>, guard: AddressGuard): SettingsRead {
  const { busy, reveal_busy, ring_timeout_ms, media, presence, take, invite_url, invite_failure } = body
  try {
    const changes = {
      ...(busy !== undefined && { busy: oneOf('busy', busy, ['allow', 'reject']) }),
      ...(reveal_busy !== undefined && { revealBusy: flag('reveal_busy', reveal_busy) }),
      ...(ring_timeout_ms !== undefined && { ringTimeoutMs: ringTimeout(ring_timeout_ms) }),
      ...(media !== undefined && { media: oneOf('media', media, ['all', 'relay']) }),
      ...(presence !== undefined && { presence: oneOf('presence', presence, ['off', 'peers']) }),
      ...(take !== undefined && { take: flag('take', take) }),
      ...(invite_url !== undefined && inviteHook(invite_url, guard)),
      ...(invite_failure !== undefined && {
        inviteFailure: oneOf('invite_failure', invite_failure, ['allow', 'refuse']),
      }),
    }
    return { ok: true, changes }
  } catch (error) {
    if (error instanceof Bad) return { ok: false, message: error.message }
    throw error
  }
}

/** A product that gets its first invite URL gets a secret; the secret goes when the URL goes [HOOK5]. */
function inviteHook(url: unknown, guard: AddressGuard): Pick<ProductSettings, 'inviteUrl' | 'inviteSecret'> {
  if (url === null) return { inviteUrl: null, inviteSecret: null }
  const problem = urlProblem(url, guard, { name: 'invite_url', hint: localHint })
  if (problem !== undefined) throw new Bad(problem)
  return { inviteUrl: new URL(url as string).href, inviteSecret: newWebhookSecret() }
}

function oneOf<T extends string>(name: string, value: unknown, allowed: readonly T[]): T {
  const found = allowed.find((one) => one === value)
  if (found === undefined) throw new Bad(`${name} must be ${allowed.join(' or ')}.`)
  return found
}

function flag(name: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw new Bad(`${name} must be true or false.`)
  return value
}

function ringTimeout(value: unknown): number | null {
  const { min, max } = ringTimeoutLimits
  if (value === null || (Number.isInteger(value) && Number(value) >= min && Number(value) <= max))
    return value as number
  throw new Bad(`ring_timeout_ms must be a whole number of ms from ${min} to ${max}, or null for that of the service.`)
}

/** As it is shown: without the secret. */
export function shownSettings(product: string, settings: ProductSettings): ProductShown {
  return {
    product,
    busy: settings.busy,
    reveal_busy: settings.revealBusy,
    ring_timeout_ms: settings.ringTimeoutMs,
    media: settings.media,
    presence: settings.presence,
    take: settings.take,
    invite_url: settings.inviteUrl,
    invite_failure: settings.inviteFailure,
  }
}
