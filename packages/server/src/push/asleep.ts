import type { WakeDevice } from '@ringwire/protocol/webhook-events'
import { type Call, type CallRef, callKey, participantOf, type RingingCall } from '../call/call.ts'
import type { Device, Devices } from '../ports/devices.ts'
import type { MaybePromise } from '../ports/maybe.ts'
import type { Sessions } from '../ports/sessions.ts'
import type { AtLast } from './at-last.ts'
import type { Sender } from './sender.ts'
import type { Wakes } from './wakes.port.ts'

export interface AsleepOptions {
  readonly devices: Pick<Devices, 'of'>
  readonly sessions: Pick<Sessions, 'seen'>
  readonly wakes: Pick<Wakes, 'add'>
  readonly sender: Pick<Sender, 'serves' | 'servesAny'>
  readonly now: () => number
  /** The call as it is stored. */
  readonly load: (ref: CallRef) => MaybePromise<Call | undefined>
  /** A call rings, and the callee has no device that could be woken. */
  readonly onNoDevice: (call: Call, found: CalleeDevices) => void
}

/** How many devices of a callee had a session as the ring began, and how many are registered. */
export interface CalleeDevices {
  readonly connected: number
  readonly registered: number
}

/** The devices that this node is to wake, by their names, and those that are registered. */
export interface Due {
  readonly names: readonly string[]
  readonly registered: readonly Device[]
}

/** Finds the devices of a callee that sleep while a call rings; each is found once, by one node. */
export function createAsleep(options: AsleepOptions, atLast: AtLast) {
  const { devices, sessions, wakes, sender, now, load } = options

  async function read(call: Call) {
    const callee = participantOf(call, 'callee')
    return { registered: await devices.of(callee, now()), seen: await sessions.seen(callee) }
  }

  return {
    /** The ring begins. Undefined: nobody is to be woken. */
    async first(call: RingingCall, signal: AbortSignal): Promise<Due | undefined> {
      const { ringExpiresAt: until } = call
      const { registered, seen } = await atLast(() => read(call), until, signal)
      const live = new Set(seen.map(({ deviceId }) => deviceId))
      const isNobodyThere = live.size === 0 && registered.length === 0
      if (isNobodyThere || (sender.servesAny && !registered.some((device) => isServed(device, sender))))
        options.onNoDevice(call, { connected: live.size, registered: registered.length })
      // An unsure socket counts: it is just being asked about this call, too.
      const asleep = registered.flatMap(({ deviceId }) => (live.has(deviceId) ? [] : [deviceId]))
      // Without a push service nobody asks whether the ring is known.
      if (asleep.length === 0 && !sender.servesAny) return undefined
      return { registered, names: await wakes.add(callKey(call), asleep, until) }
    },
    /** The ring goes on, and devices may have fallen asleep: also the one of this name. */
    async again(call: RingingCall, deviceId: string | null, signal: AbortSignal): Promise<Due | undefined> {
      const { registered, seen } = await atLast(() => read(call), call.ringExpiresAt, signal)
      // Those with a session whose client is there as far as anybody knows.
      const awake = new Set(seen.flatMap(({ deviceId, isUnsure }) => (deviceId && !isUnsure ? [deviceId] : [])))
      const named = deviceId === null ? [] : [deviceId]
      const names = new Set([...named, ...registered.map(({ deviceId }) => deviceId)])
      const asleep = [...names.difference(awake)]
      if (asleep.length === 0 || (await load(call))?.status !== 'ringing') return undefined
      return { registered, names: await wakes.add(callKey(call), asleep, call.ringExpiresAt) }
    },
  }
}

export const isServed = ({ address }: Device, sender: Pick<Sender, 'serves'>) => sender.serves(address.platform)

/** What a backend that wakes devices itself hears of those that are due. */
export function wakeDevices({ names, registered }: Due, sender: Pick<Sender, 'serves'>): WakeDevice[] {
  return names.map((name) => {
    const device = registered.find(({ deviceId }) => deviceId === name)
    const platform = device?.address.platform ?? null
    const pushed = device !== undefined && isServed(device, sender)
    return { device_id: name, platform, reached: false, pushed }
  })
}
