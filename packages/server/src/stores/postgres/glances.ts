import type { Connections, Row, SqlParameter } from './connections.ts'

/** Runs a read, together with others that are asked for in this turn of the event loop. */
export type Look = (text: string, values: readonly SqlParameter[]) => Promise<Row[]>

interface Asked {
  readonly values: readonly SqlParameter[]
  resolve(rows: Row[]): void
  reject(error: unknown): void
}

/**
 * Reads of one group that are asked for in one turn of the event loop go in one statement; a single one goes as it is. A read
 * names its columns, and each of them is a text, a number or a truth value, for its rows may come as JSON. One that nobody asks
 * for in a turn is not carried out in it.
 */
export function createGlances(connections: Connections, groups: readonly (readonly string[])[]): Look {
  const looks = new Map<string, Look>()
  for (const reads of groups) {
    const look = createGlance(connections, reads)
    for (const text of reads) looks.set(text, look)
  }
  return (text, values) => (looks.get(text) as Look)(text, values)
}

function createGlance(connections: Connections, reads: readonly string[]): Look {
  const sql = together(reads)
  const sizes = reads.map(sizeOf)
  let asked = new Map<string, Asked>()

  function send(): void {
    const turn = asked
    asked = new Map()
    const [first, second] = turn
    if (first === undefined) return
    // Alone it is a statement of its own, which costs the server less.
    if (second === undefined) {
      const [text, { values, resolve, reject }] = first
      connections.run(text, values, { repeatable: true }).then(resolve, reject)
    } else sendTogether(turn)
  }

  function sendTogether(turn: ReadonlyMap<string, Asked>): void {
    const values = reads.flatMap((text, i) => {
      const { values } = turn.get(text) ?? {}
      return [values !== undefined, ...(values ?? Array.from({ length: sizes[i] ?? 0 }, () => null))]
    })
    connections.run(sql, values, { repeatable: true }).then(
      ([row]) => {
        for (const [text, { resolve }] of turn) resolve(JSON.parse(row[nameOf(reads.indexOf(text))]) as Row[])
      },
      (error) => {
        for (const { reject } of turn.values()) reject(error)
      },
    )
  }

  return (text, values) => {
    // The same read with other values goes in the next statement.
    if (asked.has(text)) send()
    if (asked.size === 0) setImmediate(send)
    const { promise, resolve, reject } = Promise.withResolvers<Row[]>()
    asked.set(text, { values, resolve, reject })
    return promise
  }
}

const nameOf = (index: number) => `read_${index}`
/** How many parameters a read has. */
const sizeOf = (text: string) => Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map(([, n]) => Number(n)))

/** One row with a list of rows for each read. Before the parameters of a read comes whether it is asked for. */
export function together(reads: readonly string[]): string {
  let count = 0
  const lists = reads.map((text, index) => {
    const isAsked = ++count
    const read = text.replaceAll(/\$(\d+)/g, (_, n) => `$${isAsked + Number(n)}`)
    count += sizeOf(text)
    return `
      CASE WHEN $${isAsked}::boolean THEN (
        SELECT coalesce(json_agg(row_to_json(found)), '[]') FROM (${read}) AS found
      )::text END AS ${nameOf(index)}`
  })
  return `SELECT ${lists}`
}
