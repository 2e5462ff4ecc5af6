import type { Database } from 'bun:sqlite'
import { addressHash, type Devices, deviceFreshMs, deviceKeptMs, mostDevices } from '../../ports/devices.ts'
import type { MaybePromise } from '../../ports/maybe.ts'
import { type DeviceRow, deviceOf } from '../sql/device-rows.ts'
import { sqlFailure } from './connection.ts'

/** The last that registered; also what one too many is told by. */
export const devicesSql = `
  SELECT device_id, address, registered_at FROM devices
  WHERE product = ? AND role = ? AND user_id = ? AND registered_at > ?
  ORDER BY registered_at DESC, device_id LIMIT ?`
export const movedSql = `
  DELETE FROM devices
  WHERE product = ? AND address_hash = ? AND (user_id <> ? OR (role = ? AND device_id <> ?))`
const tooManySql = `
  DELETE FROM devices WHERE product = ? AND role = ? AND user_id = ? AND device_id NOT IN (
    SELECT device_id FROM devices WHERE product = ? AND role = ? AND user_id = ?
    ORDER BY registered_at DESC, device_id LIMIT ?)`
/** Some of those that were given up: each that comes takes a few along. */
export const givenUpSql = `
  DELETE FROM devices WHERE rowid IN (SELECT rowid FROM devices WHERE registered_at <= ? ORDER BY registered_at LIMIT 10)`

/** Devices in the file. Writes are rare, for who registers again writes nothing, and made on the calling thread. */
export function createDevices(db: Database): Devices {
  const one = db.query<DeviceRow, string[]>(
    'SELECT device_id, address, registered_at FROM devices WHERE product = ? AND role = ? AND user_id = ? AND device_id = ?',
  )
  const of = db.query<DeviceRow, (string | number)[]>(devicesSql)
  const put = db.query(`
    INSERT INTO devices (product, role, user_id, device_id, address, address_hash, registered_at)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (product, role, user_id, device_id) DO UPDATE
    SET address = excluded.address, address_hash = excluded.address_hash, registered_at = excluded.registered_at`)
  const dropMoved = db.query(movedSql)
  const dropTooMany = db.query(tooManySql)
  const dropGivenUp = db.query(givenUpSql)
  const forget = db.query('DELETE FROM devices WHERE product = ? AND role = ? AND user_id = ? AND device_id = ?')
  const forgetThis = db.query(
    'DELETE FROM devices WHERE product = ? AND role = ? AND user_id = ? AND device_id = ? AND address_hash = ?',
  )
  const forgetAll = db.query('DELETE FROM devices WHERE product = ? AND role = ? AND user_id = ?')

  return {
    put({ participant: { product, role, userId }, deviceId, address, registeredAt }) {
      const text = JSON.stringify(address)
      const hash = addressHash(address)
      const write = db.transaction(() => {
        put.run(product, role, userId, deviceId, text, hash, registeredAt)
        dropMoved.run(product, hash, userId, role, deviceId)
        dropTooMany.run(product, role, userId, product, role, userId, mostDevices)
        dropGivenUp.run(registeredAt - deviceKeptMs)
      })
      return attempt(() => {
        const known = one.get(product, role, userId, deviceId)
        if (known?.address === text && known.registered_at > registeredAt - deviceFreshMs) return
        write.immediate()
      })
    },
    forget({ product, role, userId }, deviceId, address) {
      return attempt(() => {
        if (address === undefined) return forget.run(product, role, userId, deviceId).changes > 0
        return forgetThis.run(product, role, userId, deviceId, addressHash(address)).changes > 0
      })
    },
    forgetAll: ({ product, role, userId }) => attempt(() => forgetAll.run(product, role, userId).changes),
    of(participant, now) {
      const { product, role, userId } = participant
      return attempt(() =>
        of
          .all(product, role, userId, now - deviceKeptMs, mostDevices)
          .map((row: DeviceRow) => deviceOf(row, participant)),
      )
    },
    close: () => db.close(),
  }
}

function attempt<T>(action: () => T): MaybePromise<T> {
  try {
    return action()
  } catch (error) {
    return Promise.reject(sqlFailure(error))
  }
}
