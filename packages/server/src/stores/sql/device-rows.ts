import type { Participant } from '../../call/call.ts'
import type { Device, PushAddress } from '../../ports/devices.ts'

/** A row of `devices`, but for whose it is. */
export interface DeviceRow {
  device_id: string
  address: string
  registered_at: number
}

/** Of several people: with whose it is. */
export type MemberDeviceRow = DeviceRow & { user_id: string }

export function deviceOf(row: DeviceRow, participant: Participant): Device {
  return {
    participant,
    deviceId: row.device_id,
    address: JSON.parse(row.address) as PushAddress,
    registeredAt: Number(row.registered_at),
  }
}
