import type { AuditActor, AuditEntry } from '../../ports/audit.ts'

/** All are texts, in this order. */
export const auditColumns = [
  ...(['id', 'actor_kind', 'actor', 'action', 'product', 'role', 'user_id', 'subject', 'detail'] as const),
] as const

export type AuditRow = Readonly<Record<(typeof auditColumns)[number], string>>

/** The most that are removed at once. */
export const mostPruned = 500
/** Greater than any id of an entry. */
export const lastId = 'g'

export function auditValues(entry: AuditEntry): string[] {
  const { id, actor, action, product, participant, subject, detail } = entry
  const about = [participant?.role ?? '', participant?.userId ?? '']
  return [id, actor.kind, actor.name, action, product, ...about, subject, JSON.stringify(detail)]
}

export function auditEntryOf(row: AuditRow): AuditEntry {
  return {
    id: row.id,
    actor: { kind: row.actor_kind as AuditActor['kind'], name: row.actor },
    action: row.action,
    product: row.product,
    participant: row.role === '' ? null : { role: row.role, userId: row.user_id },
    subject: row.subject,
    detail: JSON.parse(row.detail),
  }
}
