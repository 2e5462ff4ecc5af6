import type { ErasedCounts } from '../../participants/erasures.port.ts'

export const countColumns = ['devices', 'timeline_entries', 'calls', 'webhook_deliveries'] as const

/** The assignments for a participant that already has a row; `before` names that row. */
export const addedSql = (before: string) =>
  countColumns.map((column) => `${column} = ${before}.${column} + excluded.${column}`).join(', ')

/** In the order of the columns. */
export function countValues({ devices, timelineEntries, calls, webhookDeliveries }: ErasedCounts) {
  return [devices, timelineEntries, calls, webhookDeliveries] as const
}

export interface CountRow {
  devices: number
  timeline_entries: number
  calls: number
  webhook_deliveries: number
}

export function countsOf({ devices, timeline_entries, calls, webhook_deliveries }: CountRow): ErasedCounts {
  return { devices, timelineEntries: timeline_entries, calls, webhookDeliveries: webhook_deliveries }
}
