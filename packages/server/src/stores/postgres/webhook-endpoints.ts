import type { EndpointStore, WebhookEndpoint } from '../../ports/webhooks.ts'
import { dropInSteps, dropSize, dropSteps } from '../sql/kept-deliveries.ts'
import { createKnownEndpoints, type EndpointCounts } from '../sql/known-endpoints.ts'
import { type EndpointRow, endpointColumns, endpointOf, endpointValues, type Subscribers } from '../sql/subscribers.ts'
import type { Connections, Row, SqlParameter } from './connections.ts'
import type { Look } from './glances.ts'

const numbers = new Set(['created_at', 'old_secret_until', 'ended_at'])
/** Columns of a row, as they are read: numbers and times as numbers. */
export const selected = (columns: readonly string[], from: string) =>
  columns
    .map((column) => {
      if (column === 'due_at') return `(extract(epoch FROM ${from}.due_at) * 1000)::float8 AS due_at`
      return numbers.has(column) ? `${from}.${column}::float8 AS ${column}` : `${from}.${column}`
    })
    .join(', ')

const endpointsSql = (where: string) =>
  `SELECT ${selected(endpointColumns, 'w')} FROM webhook_endpoints w ${where} ORDER BY w.created_at, w.id`
/** How often endpoints were changed and removed. */
export const countsSql = 'SELECT changed::float8 AS changed, removed::float8 AS removed FROM webhook_revision'
const removeSql = `
  WITH gone AS (DELETE FROM webhook_endpoints WHERE product = $1 AND id = $2 RETURNING id)
  INSERT INTO webhook_removals (endpoint_id) SELECT id FROM gone RETURNING endpoint_id`
export const dropSql = `
  DELETE FROM webhook_deliveries WHERE id IN (
    SELECT id FROM webhook_deliveries WHERE endpoint_id = $1 LIMIT ${dropSize}
  ) RETURNING 1`

export function createEndpointStore(connections: Connections, look: Look, subscribers: Subscribers): EndpointStore {
  const once = (text: string, values: readonly SqlParameter[]): Promise<Row[]> =>
    connections.run(text, values, { repeatable: false })
  const endpoints = async (text: string, values: readonly SqlParameter[]) =>
    ((await connections.run(text, values, { repeatable: true })) as EndpointRow[]).map(endpointOf)

  return {
    refresh: createRefresh(connections, look, subscribers),
    endpointsOf: (product) => endpoints(endpointsSql('WHERE w.product = $1'), [product]),
    async addEndpoint(endpoint) {
      const row = JSON.stringify(Object.fromEntries(endpointValues(endpoint)))
      await once(
        `INSERT INTO webhook_endpoints (${endpointColumns})
         SELECT ${endpointColumns} FROM json_populate_record(NULL::webhook_endpoints, $1::text::json)`,
        [row],
      )
    },
    async changeEndpoint(product, id, changes) {
      const values = endpointValues(changes)
      const row = JSON.stringify(Object.fromEntries(values))
      // A column that is set to itself: what is not given stays.
      const set = ['id = w.id', ...values.map(([column]) => `${column} = c.${column}`)]
      const [changed] = await endpoints(
        `UPDATE webhook_endpoints w SET ${set} FROM json_populate_record(NULL::webhook_endpoints, $1::text::json) AS c
         WHERE w.product = $2 AND w.id = $3 RETURNING ${selected(endpointColumns, 'w')}`,
        [row, product, id],
      )
      return changed
    },
    async removeEndpoint(product, id) {
      if ((await once(removeSql, [product, id])).length === 0) return false
      await dropInSteps(() => dropSome(connections, id), dropSteps)
      return true
    },
  }
}

/** Removes `dropSize` deliveries of an endpoint at the most; answers how many. */
export async function dropSome(connections: Connections, endpointId: string): Promise<number> {
  return (await connections.run(dropSql, [endpointId], { repeatable: true })).length
}

/** Reads what changed since the last time. */
function createRefresh(connections: Connections, look: Look, subscribers: Subscribers): EndpointStore['refresh'] {
  const run = (text: string, values: readonly SqlParameter[]) => connections.run(text, values, { repeatable: true })
  const known = createKnownEndpoints(subscribers)
  let lastRefresh: Promise<unknown> = Promise.resolve()

  async function readKnown(): Promise<readonly WebhookEndpoint[]> {
    const [counts] = (await look(countsSql, [])) as unknown as EndpointCounts[]
    if (counts === undefined) throw new Error('webhook_revision is empty')
    const since = known.since(counts)
    if (since === undefined) return known.list
    return known.take(counts, (await run(endpointsSql('WHERE w.revision > $1'), [since])) as EndpointRow[])
  }

  return () => {
    // One at a time: rows count from the state that is known at the request, and another refresh changes that.
    const refreshed = lastRefresh.then(readKnown, readKnown)
    lastRefresh = refreshed
    return refreshed
  }
}
