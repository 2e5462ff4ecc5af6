import type { Database } from 'bun:sqlite'
import {
  addressHash,
  type Device,
  type Devices,
  deviceFreshMs,
  deviceKeptMs,
  mostDevices,
} from '../../ports/devices.ts'
import { macrotask } from '../../ports/macrotask.ts'
import { type DeviceRow, deviceOf, type MemberDeviceRow } from '../sql/device-rows.ts'
import { attempt, sqlFailure } from './connection.ts'
import { rowsOfPage } from './pages.ts'
import type { RowStatement, RowWrites } from './row-writes.ts'

/** The devices that registered last; also tells whether there is one too many. */
export const devicesSql = `
  SELECT device_id, address, registered_at FROM devices
  WHERE product = ? AND role = ? AND user_id = ? AND registered_at > ?
  ORDER BY registered_at DESC, device_id LIMIT ?`
/** The same of several people, whose user_ids are a JSON array. */
export const memberDevicesSql = `
  SELECT devices.user_id, device_id, address, registered_at FROM json_each(?1)
  CROSS JOIN devices ON product = ?2 AND role = ?3 AND devices.user_id = json_each.value AND registered_at > ?4
  ORDER BY json_each.key, registered_at DESC, device_id`
/** Nobody has more than `mostDevices`. */
const membersOfPage = Math.floor(rowsOfPage / mostDevices)
export const movedSql = `
  DELETE FROM devices
  WHERE product = ? AND address_hash = ? AND (user_id <> ? OR (role = ? AND device_id <> ?))`
const tooManySql = `
  DELETE FROM devices WHERE product = ? AND role = ? AND user_id = ? AND device_id NOT IN (
    SELECT device_id FROM devices WHERE product = ? AND role = ? AND user_id = ?
    ORDER BY registered_at DESC, device_id LIMIT ?)`
const putSql = `
  INSERT INTO devices (product, role, user_id, device_id, address, address_hash, registered_at)
  VALUES (?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (product, role, user_id, device_id) DO UPDATE
  SET address = excluded.address, address_hash = excluded.address_hash, registered_at = excluded.registered_at`
const forgetSql = 'DELETE FROM devices WHERE product = ? AND role = ? AND user_id = ? AND device_id = ?'
const forgetAllSql = 'DELETE FROM devices WHERE product = ? AND role = ? AND user_id = ?'
/** Some of those that were given up: each that comes takes a few along. */
export const givenUpSql = `
  DELETE FROM devices WHERE rowid IN (SELECT rowid FROM devices WHERE registered_at <= ? ORDER BY registered_at LIMIT 10)`

/** Devices in the file. The writer thread writes them: what a loss of power takes along is registered again when the app starts. */
export function createDevices(reader: Database, writes: RowWrites): Devices {
  const one = reader.query<DeviceRow, string[]>(
    'SELECT device_id, address, registered_at FROM devices WHERE product = ? AND role = ? AND user_id = ? AND device_id = ?',
  )
  const of = reader.query<DeviceRow, (string | number)[]>(devicesSql)
  const ofMembers = reader.query<MemberDeviceRow, [string, string, string, number]>(memberDevicesSql)
  /** Writes under way: what they change is not to be read yet. */
  let writing = 0

  async function write(statements: readonly RowStatement[], isLight = true): Promise<number> {
    writing++
    try {
      return await writes.rows({ type: 'rows', statements, isLight })
    } finally {
      writing--
    }
  }

  /** Reads at once: writes are sent in the order of the calls. */
  function known(...device: string[]): DeviceRow | null {
    try {
      return one.get(...device)
    } catch (error) {
      throw sqlFailure(error)
    }
  }

  return {
    async put({ participant: { product, role, userId }, deviceId, address, registeredAt }) {
      const text = JSON.stringify(address)
      const hash = addressHash(address)
      const before = writing > 0 ? null : known(product, role, userId, deviceId)
      if (before?.address === text && before.registered_at > registeredAt - deviceFreshMs) return
      await write([
        [putSql, product, role, userId, deviceId, text, hash, registeredAt],
        [movedSql, product, hash, userId, role, deviceId],
        [tooManySql, product, role, userId, product, role, userId, mostDevices],
        [givenUpSql, registeredAt - deviceKeptMs],
      ])
    },
    async forget({ product, role, userId }, deviceId, address) {
      const device = [product, role, userId, deviceId] as const
      const gone = await (address === undefined
        ? write([[forgetSql, ...device]])
        : write([[`${forgetSql} AND address_hash = ?`, ...device, addressHash(address)]]))
      return gone > 0
    },
    // Whose devices are erased is not to be known again, also after a loss of power.
    forgetAll: ({ product, role, userId }) => write([[forgetAllSql, product, role, userId]], false),
    of(participant, now) {
      const { product, role, userId } = participant
      return attempt(() =>
        of
          .all(product, role, userId, now - deviceKeptMs, mostDevices)
          .map((row: DeviceRow) => deviceOf(row, participant)),
      )
    },
    async ofMembers({ product, role }, userIds, now) {
      const found: Device[] = []
      for (let from = 0; from < userIds.length; from += membersOfPage) {
        if (from > 0) await macrotask()
        const some = JSON.stringify(userIds.slice(from, from + membersOfPage))
        const rows = await attempt(() => ofMembers.all(some, product, role, now - deviceKeptMs))
        found.push(...rows.map((row) => deviceOf(row, { product, role, userId: row.user_id })))
      }
      return found
    },
    // Its connections are those of others.
    close() {},
  }
}
