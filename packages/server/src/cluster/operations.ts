import type { SessionTable } from '../session/table.ts'

/** The operations on a session by its id, wherever its owner is. Arguments and answers are plain data. */
export function createOperations(table: SessionTable) {
  return {
    append: table.append,
    keep: table.keep,
    apply: table.apply,
    inCall: table.inCall,
    holdsAny: table.holdsAny,
    wasClosed: (sessionId: string) => table.wasClosed(sessionId, ''),
    give: table.give,
    gave: table.gave,
    accept: (to: string, call: string, ...how: AcceptArgs) => table.accept(call, to, ...how),
    exists: (sessionId: string) => table.get(sessionId) !== undefined,
  }
}

type AcceptArgs = Parameters<SessionTable['accept']> extends [string, string, ...infer Rest] ? Rest : never

export type Operations = ReturnType<typeof createOperations>
export type Operation = keyof Operations
