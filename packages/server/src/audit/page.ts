import { type AuditEntry, type AuditStore, timeOfAudit } from '../ports/audit.ts'

/** An entry as operators see it. */
export interface AuditView {
  readonly at: string
  readonly by: { readonly kind: AuditEntry['actor']['kind']; readonly name: string }
  readonly action: string
  readonly product: string | null
  /** The user_id is empty once it was erased. */
  readonly participant: { readonly role: string; readonly user_id: string } | null
  readonly subject: string | null
  readonly detail: AuditEntry['detail']
}

export interface AuditPage {
  readonly data: readonly AuditView[]
  readonly next_cursor: string | null
}

/** `cursor`: the `next_cursor` of the previous page. Any other text means the first page. */
export async function auditPage(
  audit: Pick<AuditStore, 'list'>,
  { product, limit, cursor }: { product: string | undefined; limit: number; cursor: string | undefined },
): Promise<AuditPage> {
  const before = cursor !== undefined && /^[0-9a-f]{28}$/.test(cursor) ? cursor : undefined
  const entries = await audit.list({ product, before, limit: limit + 1 })
  const shown = entries.slice(0, limit)
  return { data: shown.map(viewOf), next_cursor: entries.length > limit ? (shown.at(-1)?.id ?? null) : null }
}

function viewOf(entry: AuditEntry): AuditView {
  const { actor, action, product, participant, subject, detail } = entry
  return {
    at: new Date(timeOfAudit(entry)).toISOString(),
    by: { kind: actor.kind, name: actor.name },
    action,
    product: product || null,
    participant: participant && { role: participant.role, user_id: participant.userId },
    subject: subject || null,
    detail,
  }
}
