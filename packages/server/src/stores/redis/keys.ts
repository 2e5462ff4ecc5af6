import { tagOfHash, tagOfSessionId } from '../../ports/session-id.ts'

export const rowKey = (sessionId: string) => `rw:{${tagOfSessionId(sessionId)}}:o:${sessionId}`
export const logKey = (sessionId: string) => `rw:{${tagOfSessionId(sessionId)}}:e:${sessionId}`
export const indexKey = (hash: string) => `rw:{${tagOfHash(hash)}}:i:${hash}`
/** What is sent to a node. */
export const inboxOf = (node: string) => `rw:n:{${node}}`
