// biome-ignore-all lint/performance/noBarrelFile: the one face of the package; client.ts also has what tests replace
export type { ErrorCode, LimitName } from '@ringwire/protocol/errors'
export { createCallClient } from './client.ts'
export { RingwireError } from './error.ts'
export type * from './types.ts'
export { clientErrorCodes, ownReasons } from './types.ts'
