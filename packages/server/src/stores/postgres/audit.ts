import type { AuditStore } from '../../ports/audit.ts'
import { type AuditRow, auditColumns, auditEntryOf, auditValues, lastId, mostPruned } from '../sql/audit-rows.ts'
import type { Connections, SqlParameter } from './connections.ts'

const columns = auditColumns.join(', ')
export const auditSql = `SELECT ${columns} FROM audit WHERE id < $1 ORDER BY id DESC LIMIT $2::int`
export const auditOfProductSql = `
  SELECT ${columns} FROM audit WHERE product = $1 AND id < $2 ORDER BY id DESC LIMIT $3::int`
export const auditAboutSql = `
  SELECT ${columns} FROM audit
  WHERE product = $1 AND role = $2 AND user_id = $3 AND user_id <> '' AND id < $4 ORDER BY id DESC LIMIT $5::int`
const addSql = `
  INSERT INTO audit (${columns}) VALUES (${auditColumns.map((_, i) => `$${i + 1}`).join(', ')}) ON CONFLICT DO NOTHING`
export const forgetAuditSql = `
  UPDATE audit SET user_id = '' WHERE product = $1 AND role = $2 AND user_id = $3 AND user_id <> '' RETURNING 1`
export const pruneAuditSql = `
  DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE id < $1 ORDER BY id LIMIT ${mostPruned}) RETURNING 1`

/** The audit log in the database. */
export function createAuditStore(connections: Connections): AuditStore {
  const run = (text: string, values: readonly SqlParameter[]): Promise<AuditRow[]> =>
    // Each of the writes leaves the same behind when it is done twice.
    connections.run(text, values, { repeatable: true })

  return {
    async add(entry) {
      await run(addSql, auditValues(entry))
    },
    async list({ product, before = lastId, limit }) {
      const rows = await (product === undefined
        ? run(auditSql, [before, limit])
        : run(auditOfProductSql, [product, before, limit]))
      return rows.map(auditEntryOf)
    },
    about: async ({ product, role, userId }, { before = lastId, limit }) =>
      (await run(auditAboutSql, [product, role, userId, before, limit])).map(auditEntryOf),
    forget: async ({ product, role, userId }) => (await run(forgetAuditSql, [product, role, userId])).length,
    prune: async (before) => (await run(pruneAuditSql, [before])).length,
  }
}
