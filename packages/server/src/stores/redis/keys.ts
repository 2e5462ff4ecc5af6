import { tagOfHash, tagOfSessionId } from '../../ports/session-id.ts'

export const rowKey = (sessionId: string) => `rw:{${tagOfSessionId(sessionId)}}:o:${sessionId}`
export const logKey = (sessionId: string) => `rw:{${tagOfSessionId(sessionId)}}:e:${sessionId}`
export const indexKey = (hash: string) => `rw:{${tagOfHash(hash)}}:i:${hash}`
/** The messages for a node. */
export const inboxOf = (node: string) => `rw:n:{${node}}`
/** On a cluster, the master of this tag has the signs of all nodes. */
export const signsTag = 'signs'
/** A key of that tag that no node writes. A master without that slot answers a read of it with the address of the new master. */
export const signsKey = `rw:{${signsTag}}:s`
/** The channel to which a node subscribes for as long as it lives. */
export const signOf = (node: string) => `rw:s:${node}`
