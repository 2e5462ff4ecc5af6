import { createHash } from 'node:crypto'
import type { Participant } from '../call/call.ts'
import type { MaybePromise } from './maybe.ts'

/**
 * The address at which a push service finds a device [PUSH1]. Anyone who has it can push to the device, or to nobody: it
 * is a secret.
 */
export type PushAddress =
  /** A subscription of the Push API: the keys are base64url, as `PushSubscription.toJSON` has them. */
  | { readonly platform: 'webpush'; readonly endpoint: string; readonly p256dh: string; readonly auth: string }
  | { readonly platform: 'fcm'; readonly token: string }
  | {
      readonly platform: 'apns'
      readonly token: string
      readonly voip: boolean
      readonly environment: 'production' | 'sandbox'
    }

export interface Device {
  readonly participant: Participant
  /** The `device_id` of the session token that it was registered with. */
  readonly deviceId: string
  readonly address: PushAddress
  /** Ms since the epoch. */
  readonly registeredAt: number
}

/** So many devices a participant has at the most: the ones that were registered last. */
export const mostDevices = 20
/** A device that has not registered for this time is given up, in ms. FCM forgets a token after as long. */
export const deviceKeptMs = 270 * 86_400_000
/** One that registers again sooner, and unchanged, writes nothing. In ms. */
export const deviceFreshMs = 86_400_000

/**
 * The devices that can be woken.
 *
 * Guarantees: a device_id has one address, the last one; an address belongs to one user of a product, the one that
 * registered it last, for people hand their phones on; of one participant there are never more than `mostDevices` to read.
 * What one process writes, the next read of any process sees. Rejections are `StoreError`s.
 */
export interface Devices {
  put(device: Device): MaybePromise<void>
  /** False where there was none. With an address: only if the device still has it. */
  forget(participant: Participant, deviceId: string, address?: PushAddress): MaybePromise<boolean>
  /** All of a participant; answers how many. */
  forgetAll(participant: Participant): MaybePromise<number>
  /** The devices of a participant that registered since `now - deviceKeptMs`, the last one first. */
  of(participant: Participant, now: number): MaybePromise<readonly Device[]>
  /** The same of several people of one role at once, each with the last one first. */
  ofMembers(
    of: Pick<Participant, 'product' | 'role'>,
    userIds: readonly string[],
    now: number,
  ): MaybePromise<readonly Device[]>
  close(): MaybePromise<void>
}

/** The same for the same address, and says nothing of it. */
export function addressHash(address: PushAddress): string {
  const name = address.platform === 'webpush' ? address.endpoint : address.token
  return createHash('sha256').update(`${address.platform}\n${name}`).digest('base64url')
}
