import type { Environment } from './environment.ts'

/** The service's clock as this device knows it. `changed` runs when it is known better. */
export function createServerClock(env: Environment, changed: () => void) {
  /** The service's clock minus this one. */
  let offset = 0
  let isKnown = false

  function tell(time: number): void {
    if (Number.isNaN(time)) return
    offset = time - env.now()
    changed()
  }

  return {
    /** How long until the service's clock says this. */
    msUntil: (time: string): number => Date.parse(time) - env.now() - offset,
    /** The service's time, by this device's clock. */
    localTime: (time: string | number): number => +new Date(time) - offset,
    /** The backend's clock is a better guess than the device's, until the service tells its own. */
    hearDate(date: string | null | undefined): void {
      if (date && !isKnown) tell(Date.parse(date))
    },
    setServerTime(iso: string): void {
      const time = Date.parse(iso)
      isKnown ||= !Number.isNaN(time)
      tell(time)
    },
  }
}
