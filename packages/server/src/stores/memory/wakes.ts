import { type OwnWakes, wakesKeptMs } from '../../push/wakes.port.ts'

/** Of one process: a restart forgets them. */
export function createMemoryWakes(now: () => number): OwnWakes {
  /** The oldest first. */
  const calls = new Map<string, { readonly devices: Set<string>; readonly until: number }>()

  function forgetOld(): void {
    for (const [call, { until }] of calls) {
      if (until > now()) return
      calls.delete(call)
    }
  }

  return {
    add(call, deviceIds, ringEnd) {
      forgetOld()
      const known = calls.get(call) ?? { devices: new Set<string>(), until: ringEnd + wakesKeptMs }
      calls.set(call, known)
      const fresh = deviceIds.filter((deviceId) => !known.devices.has(deviceId))
      for (const deviceId of fresh) known.devices.add(deviceId)
      return fresh
    },
    settle() {},
    remove: (call, deviceId) => void calls.get(call)?.devices.delete(deviceId),
    of(call) {
      const known = calls.get(call)
      return known && [...known.devices]
    },
  }
}
