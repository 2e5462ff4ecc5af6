import type { Database } from 'bun:sqlite'
import type { AuditStore } from '../../ports/audit.ts'
import { type AuditRow, auditColumns, auditEntryOf, auditValues, lastId, mostPruned } from '../sql/audit-rows.ts'
import { attempt } from './connection.ts'
import type { RowWrites } from './row-writes.ts'

const columns = auditColumns.join(', ')
export const auditSql = `SELECT ${columns} FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?`
export const auditOfProductSql = `SELECT ${columns} FROM audit WHERE product = ? AND id < ? ORDER BY id DESC LIMIT ?`
export const auditAboutSql = `
  SELECT ${columns} FROM audit
  WHERE product = ? AND role = ? AND user_id = ? AND user_id <> '' AND id < ? ORDER BY id DESC LIMIT ?`
const addSql = `
  INSERT INTO audit (${columns}) VALUES (${auditColumns.map(() => '?').join(', ')}) ON CONFLICT DO NOTHING`
const forgetSql = `UPDATE audit SET user_id = '' WHERE product = ? AND role = ? AND user_id = ? AND user_id <> ''`
const pruneSql = `DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE id < ? ORDER BY id LIMIT ${mostPruned})`

/** The audit log in the file. */
export function createAuditStore(reader: Database, writes: RowWrites): AuditStore {
  const all = reader.query<AuditRow, (string | number)[]>(auditSql)
  const ofProduct = reader.query<AuditRow, (string | number)[]>(auditOfProductSql)
  const about = reader.query<AuditRow, (string | number)[]>(auditAboutSql)
  const write = (statement: Parameters<RowWrites['rows']>[0]['statements'][number]) =>
    writes.rows({ type: 'rows', statements: [statement], isLight: false })

  return {
    async add(entry) {
      await write([addSql, ...auditValues(entry)])
    },
    list: ({ product, before = lastId, limit }) =>
      attempt(() =>
        (product === undefined ? all.all(before, limit) : ofProduct.all(product, before, limit)).map(auditEntryOf),
      ),
    about: ({ product, role, userId }, { before = lastId, limit }) =>
      attempt(() => about.all(product, role, userId, before, limit).map(auditEntryOf)),
    forget: ({ product, role, userId }) => write([forgetSql, product, role, userId]),
    prune: (before) => write([pruneSql, before]),
  }
}
