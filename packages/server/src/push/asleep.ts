import type { WakeDevice } from '@ringwire/protocol/webhook-events'
import { type Call, type CallRef, callKey, type Participant, type RingingCall, ringsAt, rungBy } from '../call/call.ts'
import type { Device, Devices } from '../ports/devices.ts'
import type { MaybePromise } from '../ports/maybe.ts'
import type { SeenSession, Sessions } from '../ports/sessions.ts'
import type { AtLast } from './at-last.ts'
import type { Sender } from './sender.ts'
import { devicesOf, wakeName } from './wake-names.ts'
import type { Wakes } from './wakes.port.ts'

export interface AsleepOptions {
  readonly devices: Pick<Devices, 'of' | 'ofMembers'>
  readonly sessions: Pick<Sessions, 'seen'>
  readonly wakes: Pick<Wakes, 'add'>
  readonly sender: Pick<Sender, 'serves' | 'servesAny'>
  readonly now: () => number
  /** The call as it is stored. */
  readonly load: (ref: CallRef) => MaybePromise<Call | undefined>
  /** A call rings, and the callee has no device that could be woken; if nobody is woken at all, the callee has no session. */
  readonly onNoDevice: (call: Call, found: CalleeDevices) => void
}

/** How many devices of a callee had a session as the ring began, and how many are registered. */
export interface CalleeDevices {
  readonly connected: number
  readonly registered: number
}

/** A device that this node is to wake. */
export interface Sleeper {
  /** Its name among the devices that were woken for the call. */
  readonly name: string
  readonly participant: Participant
  readonly deviceId: string
  /** Undefined: it is not registered. */
  readonly device: Device | undefined
}

/** Somebody at whom a call rings. */
interface Found {
  readonly participant: Participant
  readonly registered: readonly Device[]
  readonly seen: readonly SeenSession[]
}

/** Finds the devices that sleep while a call rings at these people; each device is found once, by one node. */
export function createAsleep(options: AsleepOptions, atLast: AtLast) {
  const { devices, sessions, wakes, sender, now, load } = options

  /** Of a member of a group the sessions are only read where it has a device that could sleep. */
  async function read(call: Call, rung: readonly Participant[], named: string | null): Promise<readonly Found[]> {
    const found = await devicesOf(devices, rung, now())
    const byMember = Map.groupBy(found, ({ participant }) => participant.userId)
    const withSessions = async (participant: Participant): Promise<Found> => {
      const registered = byMember.get(participant.userId) ?? []
      const isNeeded = call.group === undefined || registered.length > 0 || named !== null
      return { participant, registered, seen: isNeeded ? await sessions.seen(participant) : [] }
    }
    return Promise.all(rung.map(withSessions))
  }

  function noteNoDevice(call: Call, { registered, seen }: Found): void {
    const live = new Set(seen.map(({ deviceId }) => deviceId))
    const isNobodyThere = live.size === 0 && registered.length === 0
    if (isNobodyThere || (sender.servesAny && !registered.some((device) => isServed(device, sender))))
      options.onNoDevice(call, { connected: live.size, registered: registered.length })
  }

  /** The devices that no node has found yet. */
  async function take(call: RingingCall, asleep: readonly Sleeper[]): Promise<readonly Sleeper[]> {
    const names = asleep.map(({ name }) => name)
    const taken = new Set(await wakes.add(callKey(call), names, call.ringExpiresAt))
    return asleep.filter(({ name }) => taken.has(name))
  }

  function sleeperOf(call: Call, { participant, registered }: Found, deviceId: string): Sleeper {
    const device = registered.find((each) => each.deviceId === deviceId)
    return { name: wakeName(call, participant, deviceId), participant, deviceId, device }
  }

  return {
    /** The ring begins, its callee has no session, and nobody wakes devices. */
    async nobody(call: RingingCall, signal: AbortSignal): Promise<void> {
      const registered = await atLast(async () => devicesOf(devices, rungBy(call), now()), call.ringExpiresAt, signal)
      options.onNoDevice(call, { connected: 0, registered: registered.length })
    },
    /** The ring begins at these people. */
    async first(call: RingingCall, rung: readonly Participant[], signal: AbortSignal): Promise<readonly Sleeper[]> {
      const found = await atLast(() => read(call, rung, null), call.ringExpiresAt, signal)
      if (call.group === undefined && found[0] !== undefined) noteNoDevice(call, found[0])
      const asleep = found.flatMap((each) => {
        // An unsure socket counts: it is just being asked about this call, too.
        const live = new Set(each.seen.map(({ deviceId }) => deviceId))
        const sleeping = each.registered.filter(({ deviceId }) => !live.has(deviceId))
        return sleeping.map(({ deviceId }) => sleeperOf(call, each, deviceId))
      })
      // Without a push service nobody asks whether the ring is known.
      return asleep.length === 0 && !sender.servesAny ? [] : take(call, asleep)
    },
    /** The ring goes on, and devices of these people may have fallen asleep: of one person also the one of this name. */
    async again(
      call: RingingCall,
      rung: readonly Participant[],
      named: string | null,
      signal: AbortSignal,
    ): Promise<readonly Sleeper[]> {
      const found = await atLast(() => read(call, rung, named), call.ringExpiresAt, signal)
      const asleep = found.flatMap((each) => {
        // Those with a session whose client is there as far as anybody knows.
        const awake = new Set(each.seen.flatMap(({ deviceId, isUnsure }) => (deviceId && !isUnsure ? [deviceId] : [])))
        const registered = each.registered.map(({ deviceId }) => deviceId)
        const names = new Set([...(named === null ? [] : [named]), ...registered])
        return [...names.difference(awake)].map((deviceId) => sleeperOf(call, each, deviceId))
      })
      const stored = asleep.length === 0 ? undefined : await load(call)
      if (stored === undefined) return []
      const wanted = asleep.filter(({ participant }) => ringsAt(stored, participant))
      return wanted.length === 0 ? [] : take(call, wanted)
    },
  }
}

export const isServed = ({ address }: Device, sender: Pick<Sender, 'serves'>) => sender.serves(address.platform)

/** The due devices, for a backend that wakes them itself. */
export function wakeDevices(sleepers: readonly Sleeper[], sender: Pick<Sender, 'serves'>): WakeDevice[] {
  return sleepers.map(({ deviceId, device }) => {
    const platform = device?.address.platform ?? null
    const pushed = device !== undefined && isServed(device, sender)
    return { device_id: deviceId, platform, reached: false, pushed }
  })
}
