import { forgetOldest } from '../ports/oldest.ts'

/**
 * The nodes that owned sessions when these were seen last. A route may be old: a node without the session answers
 * `notHere`.
 */
export interface Routes {
  get(sessionId: string): string | undefined
  note(sessionId: string, node: string): void
  forget(sessionId: string): void
}

const mostRoutes = 50_000

export function createRoutes(): Routes {
  const routes = new Map<string, string>()
  return {
    get: (id) => routes.get(id),
    note(id, node) {
      routes.delete(id)
      routes.set(id, node)
      forgetOldest(routes, mostRoutes)
    },
    forget: (id) => void routes.delete(id),
  }
}
