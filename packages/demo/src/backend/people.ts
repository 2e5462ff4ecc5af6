import type { SignIn } from './tokens.ts'

/** One participant as the page shows it; one person may have the page open in several tabs. */
export type Person = { user_id: string; role: string; display_name: string; devices: number }

/** A page speaks once a second, also where its tab is hidden. */
const silenceMs = 7000
const maxDevices = 1000

/** Who is online, as the toy backend knows it: this is the application's business, not the service's. */
export function createPeople(now: () => number) {
  const devices = new Map<string, { signIn: SignIn; seenAt: number }>()

  function forgetSilent(): void {
    for (const [id, device] of devices) if (now() - device.seenAt > silenceMs) devices.delete(id)
  }

  return {
    join(signIn: SignIn): void {
      forgetSilent()
      if (devices.size < maxDevices) devices.set(signIn.device_id, { signIn, seenAt: now() })
    },
    /** False when this backend does not know the device (it was restarted): the page signs in again. */
    seen(deviceId: string): boolean {
      const device = devices.get(deviceId)
      if (device) device.seenAt = now()
      return device !== undefined
    },
    leave(deviceId: string): void {
      devices.delete(deviceId)
    },
    list(): Person[] {
      forgetSilent()
      const people = new Map<string, Person>()
      for (const { signIn } of devices.values()) {
        const { user_id, role, display_name } = signIn
        const key = `${role}/${user_id}`
        const known = people.get(key)
        if (known) known.devices++
        else people.set(key, { user_id, role, display_name, devices: 1 })
      }
      return [...people.values()].sort((a, b) => a.display_name.localeCompare(b.display_name))
    },
  }
}
