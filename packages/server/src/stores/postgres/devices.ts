import { addressHash, type Devices, deviceFreshMs, deviceKeptMs, mostDevices } from '../../ports/devices.ts'
import { type DeviceRow, deviceOf, type MemberDeviceRow } from '../sql/device-rows.ts'
import type { Connections, SqlParameter } from './connections.ts'

export const devicesSql = `
  SELECT device_id, address, registered_at::float8 AS registered_at FROM devices
  WHERE product = $1 AND role = $2 AND user_id = $3 AND registered_at > $4::float8::bigint
  ORDER BY registered_at DESC, device_id LIMIT $5::int`

/** The same of each of several people, whose user_ids are a JSON array. */
export const memberDevicesSql = `
  SELECT member.user_id, device.* FROM json_array_elements_text($3::text::json) AS member (user_id), LATERAL (
    SELECT device_id, address, registered_at::float8 AS registered_at FROM devices
    WHERE product = $1 AND role = $2 AND user_id = member.user_id AND registered_at > $4::float8::bigint
    ORDER BY devices.registered_at DESC, device_id LIMIT $5::int
  ) AS device`

/**
 * Puts one, and drops: the address of its previous owner, the oldest of too many, some that were given up. Who registers
 * again soon, and unchanged, writes nothing.
 */
export const putDeviceSql = `
  WITH put AS (
    INSERT INTO devices AS known (product, role, user_id, device_id, address, address_hash, registered_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7::float8::bigint)
    ON CONFLICT (product, role, user_id, device_id) DO UPDATE
    SET address = excluded.address, address_hash = excluded.address_hash, registered_at = excluded.registered_at
    WHERE known.address <> excluded.address OR known.registered_at <= $8::float8::bigint
    RETURNING 1
  ), moved AS (
    DELETE FROM devices
    WHERE product = $1 AND address_hash = $6 AND (user_id <> $3 OR (role = $2 AND device_id <> $4))
  ), many AS (
    DELETE FROM devices WHERE product = $1 AND role = $2 AND user_id = $3 AND device_id IN (
      SELECT device_id FROM devices WHERE product = $1 AND role = $2 AND user_id = $3 AND device_id <> $4
      ORDER BY registered_at DESC, device_id OFFSET $10::int FOR UPDATE SKIP LOCKED)
  ), given_up AS (
    DELETE FROM devices WHERE (product, role, user_id, device_id) IN (
      SELECT product, role, user_id, device_id FROM devices
      WHERE registered_at <= $9::float8::bigint AND (product, role, user_id, device_id) <> ($1, $2, $3, $4)
      ORDER BY registered_at LIMIT 10 FOR UPDATE SKIP LOCKED)
  ) SELECT count(*)::int AS written FROM put`

/**
 * Two that put the same address at once do not see each other's row. The later of the two sees both, and the device that
 * registered later stays.
 */
const settleAddressSql = `
  DELETE FROM devices AS older USING devices AS newer
  WHERE older.product = $1 AND older.address_hash = $2 AND newer.product = $1 AND newer.address_hash = $2
    AND (older.user_id <> newer.user_id OR (older.role = newer.role AND older.device_id <> newer.device_id))
    AND (older.registered_at, older.user_id, older.device_id) < (newer.registered_at, newer.user_id, newer.device_id)`

const forgetSql = `
  DELETE FROM devices
  WHERE product = $1 AND role = $2 AND user_id = $3 AND device_id = $4 AND ($5::text IS NULL OR address_hash = $5)
  RETURNING 1`
const forgetAllSql = 'DELETE FROM devices WHERE product = $1 AND role = $2 AND user_id = $3 RETURNING 1'

/** Devices in the database: what another node writes is seen by the next read. */
export function createDevices(connections: Connections): Devices {
  const run = (text: string, values: readonly SqlParameter[]) =>
    // Each of the writes leaves the same behind when it is done twice.
    connections.run(text, values, { repeatable: true })

  return {
    async put({ participant: { product, role, userId }, deviceId, address, registeredAt }) {
      const hash = addressHash(address)
      await run(putDeviceSql, [
        product,
        role,
        userId,
        deviceId,
        JSON.stringify(address),
        hash,
        registeredAt,
        registeredAt - deviceFreshMs,
        registeredAt - deviceKeptMs,
        mostDevices - 1,
      ])
      await run(settleAddressSql, [product, hash])
    },
    async forget({ product, role, userId }, deviceId, address) {
      const hash = address === undefined ? null : addressHash(address)
      return (await run(forgetSql, [product, role, userId, deviceId, hash])).length > 0
    },
    forgetAll: async ({ product, role, userId }) => (await run(forgetAllSql, [product, role, userId])).length,
    async of(participant, now) {
      const { product, role, userId } = participant
      const rows: DeviceRow[] = await run(devicesSql, [product, role, userId, now - deviceKeptMs, mostDevices])
      return rows.map((row) => deviceOf(row, participant))
    },
    async ofMembers({ product, role }, userIds, now) {
      const values = [product, role, JSON.stringify(userIds), now - deviceKeptMs, mostDevices]
      const rows: MemberDeviceRow[] = await run(memberDevicesSql, values)
      return rows.map((row) => deviceOf(row, { product, role, userId: row.user_id }))
    },
    // The connections are those of the store.
    close() {},
  }
}
