import type { Beaten, Heartbeats } from '../../cluster/heartbeats.port.ts'
import { beginAfter, connectionName, runsOf } from '../../ports/node-name.ts'
import { outageMs } from '../../ports/nodes.ts'
import { Connections, type SqlParameter } from './connections.ts'

/** No statement takes longer, in ms. */
const statementLimitMs = 2_000
/** Nobody is served better by a start that gives up on a database that is slow, in ms. */
const startLimitMs = 10_000

/** The deployment, and the name of the latest run among those whose names begin with `$1`. */
const firstSql = `
  SELECT id, (SELECT max(name COLLATE "C") FROM nodes WHERE starts_with(name, $1)) AS last FROM deployment`
const nowSql = 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now'
/**
 * Counts on, and reads everybody's count. `$2`: this node serves, with both stores. `$3`: it did not a moment ago, and where
 * nobody did, that was an outage; of several who find one each sees it. One that has yet to serve has the last word of those
 * before it. Reads the outages that began at `$4` or later, in ms; those that were over for `$5` ms are of no interest any more.
 * Of the rest a lost clock needs every one of its absence [END3]. `$6`: how many sockets the node has [BAL1].
 */
export const beatSql = `
  WITH last AS (
    SELECT max(coalesce(ready_at, seen_at)) AS at FROM nodes
  ), beat AS (
    INSERT INTO nodes (name, beats, seen_at, ready_at, owns_sessions, sockets)
    SELECT $1, 1, clock_timestamp(), CASE WHEN $2 THEN clock_timestamp() ELSE coalesce(at, clock_timestamp()) END, true, $6::integer
    FROM last
    ON CONFLICT (name) DO UPDATE SET
      beats = nodes.beats + 1, seen_at = excluded.seen_at, sockets = excluded.sockets,
      ready_at = CASE WHEN $2 THEN excluded.ready_at ELSE nodes.ready_at END
  ), outage AS (
    INSERT INTO outages (began_at, ended_at)
    SELECT at, clock_timestamp() FROM last WHERE $2 AND $3 AND clock_timestamp() - at > interval '${outageMs} ms'
    ON CONFLICT (began_at) DO UPDATE SET ended_at = greatest(outages.ended_at, excluded.ended_at)
    RETURNING began_at, ended_at
  ), forgotten AS (
    DELETE FROM nodes WHERE seen_at < clock_timestamp() - interval '1 day' AND name <> $1
  ), forgotten_outages AS (
    DELETE FROM outages WHERE ended_at < clock_timestamp() - $5::float8 * interval '1 ms'
  )
  SELECT
    CASE WHEN $2 THEN 0 ELSE (
      SELECT greatest(0, extract(epoch FROM clock_timestamp() - at) * 1000) FROM last
    ) END::float8 AS ready_age,
    coalesce((
      SELECT json_agg(json_build_array(extract(epoch FROM began_at) * 1000, extract(epoch FROM ended_at) * 1000) ORDER BY began_at)
      FROM (
        SELECT began_at, max(ended_at) AS ended_at
        FROM (
          SELECT began_at, ended_at FROM outages WHERE began_at >= to_timestamp(($4::float8 - 1) / 1000)
          UNION ALL SELECT began_at, ended_at FROM outage
        ) AS each_one
        GROUP BY began_at
      ) AS known
    ), '[]')::text AS outages,
    (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now,
    (SELECT jumped_ms FROM deployment)::float8 AS jumped,
    coalesce((
      SELECT json_agg(json_build_array(
        name, beats, has_left, (extract(epoch FROM clock_timestamp() - seen_at) * 1000)::float8, owns_sessions, sockets
      )) FROM nodes WHERE name <> $1
    ), '[]')::text AS others`

/**
 * Of several nodes that find the same jump one writes it down: it is $1 ms in all, if it was $2. Outages move along. One that is
 * moved may begin where another one began, so all are gone, and sorted, before the first one is back.
 */
const jumpSql = `
  WITH jump AS (
    UPDATE deployment SET jumped_ms = $1::bigint WHERE jumped_ms = $2::bigint RETURNING jumped_ms
  ), old AS (
    DELETE FROM outages WHERE EXISTS (SELECT FROM jump) RETURNING began_at, ended_at
  ), moved AS (
    INSERT INTO outages (began_at, ended_at)
    SELECT began_at + by, ended_at + by FROM old, (SELECT ($1::float8 - $2::float8) * interval '1 ms' AS by) AS jumped
    ORDER BY began_at
  )
  SELECT coalesce((SELECT jumped_ms FROM jump), (SELECT jumped_ms FROM deployment))::float8 AS jumped`

/** As `beatSql` makes it of each other node. */
type OtherRow = readonly [
  name: string,
  beats: number,
  hasLeft: boolean,
  ageMs: number,
  ownsSessions: boolean,
  sockets: number | null,
]

export interface PostgresHeartbeats extends Heartbeats {
  /** The id of the deployment that the database belongs to [REDIS1]. */
  readonly deployment: string
  /**
   * The time of the database when it was opened, in ms since the epoch. If its clock was put back, and earlier runs of the node
   * would count as later ones, it is a time after theirs.
   */
  readonly openedAt: number
}

/** The table of nodes, on a connection of its own; the schema is up to date. */
export async function openPostgresHeartbeats(url: string, nodeId: string): Promise<PostgresHeartbeats> {
  const session = { application_name: connectionName(nodeId), statement_timeout: String(statementLimitMs) }
  const connections = new Connections({ url, limitMs: statementLimitMs, session }, 1)
  const run = (sql: string, values: readonly SqlParameter[], limitMs: number) =>
    connections.run(sql, values, { repeatable: true, deadline: performance.now() + limitMs })

  async function now(limitMs: number): Promise<number> {
    const [row] = await run(nowSql, [], limitMs)
    return row.now
  }

  async function lookFirst() {
    try {
      const at = await now(startLimitMs)
      const [{ id, last }] = await run(firstSql, [runsOf(nodeId)], startLimitMs)
      return { openedAt: beginAfter(last, at), deployment: id as string }
    } catch (error) {
      await connections.close()
      throw error
    }
  }

  return {
    ...(await lookFirst()),
    async beat({ node, ready, wasAway, outagesFrom, keptMs, sockets }, limitMs): Promise<Beaten> {
      const [row] = await run(beatSql, [node, ready, wasAway, outagesFrom, keptMs, sockets], limitMs)
      const outages = JSON.parse(row.outages) as [number, number][]
      const others = JSON.parse(row.others) as OtherRow[]
      return {
        now: row.now,
        jumpedMs: row.jumped,
        readyAgeMs: row.ready_age ?? undefined,
        outages: outages.map(([from, to]) => ({ from, to })),
        others: others.map(([name, beats, hasLeft, ageMs, ownsSessions, sockets]) => {
          return { name, beats, hasLeft, ageMs, ownsSessions, sockets }
        }),
      }
    },
    now,
    async jump(jumpedMs, known, limitMs) {
      const [row] = await run(jumpSql, [jumpedMs, known], limitMs)
      return row.jumped
    },
    async leave(node, limitMs) {
      await run('UPDATE nodes SET has_left = true WHERE name = $1', [node], limitMs)
    },
    close: () => connections.close(),
  }
}
