import { type Call, type CallRef, linkOf } from '../../call/call.ts'

/** The answer of `find` for the other call of a transfer; undefined if the call is part of none [XFER1]. */
export function linkedOf<T>(call: Call | undefined, find: (ref: CallRef) => T): T | undefined {
  const link = call && linkOf(call)
  return link && find(link)
}
